import torch

torch.set_num_threads(1)  # tensors are tiny here, and other tests want the cores
torch.backends.cudnn.allow_tf32 = False  # a GPU is compared with the CPU
