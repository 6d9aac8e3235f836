import torch

torch.set_num_threads(1)  # tensors are tiny here, and other tests want the cores
