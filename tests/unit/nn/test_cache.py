import torch

from seqtools.nn.cache import Cache


def _column(value, rows=2):
    return torch.full((rows, 1, 1, 3), float(value)) + torch.arange(rows)[:, None, None, None] / 10


def _values(cache):
    keys, values = cache.used
    assert torch.equal(keys, -values)
    return keys[:, 0, :, 0]


def _append(cache, value, places=None, rows=2):
    column = _column(value, rows)
    return cache.append(column, -column, places)


def _empty(rows=2):
    return Cache.of(torch.empty(rows, 1, 0, 3), torch.empty(rows, 1, 0, 3))


def test_columns_stand_in_the_order_of_their_coming():
    cache = _empty()
    for value in range(40):  # beyond the room that new tensors have
        cache = _append(cache, value)
    expected = torch.arange(40.0) + torch.tensor([[0.0], [0.1]])
    torch.testing.assert_close(_values(cache), expected)


def test_a_cache_stays_what_it_was_whatever_is_made_of_it():
    first = _append(_empty(), 1)
    left = _append(first, 2)
    right = _append(first, 3)
    again = _append(left, 4)
    assert _values(first)[0].tolist() == [1]
    assert _values(left)[0].tolist() == [1, 2]
    assert _values(right)[0].tolist() == [1, 3]
    assert _values(again)[0].tolist() == [1, 2, 4]


def test_going_ahead_copies_nothing():
    first = _append(_empty(), 1)
    second = _append(first, 2)
    assert second.keys.data_ptr() == first.keys.data_ptr()


def test_selected_rows_go_on_by_themselves():
    cache = _append(_append(_empty(), 1), 2)
    swapped = _append(cache.select(torch.tensor([1, 1, 0])), 5, rows=3)
    torch.testing.assert_close(
        _values(swapped), torch.tensor([[1.1, 2.1, 5.0], [1.1, 2.1, 5.1], [1.0, 2.0, 5.2]])
    )
    torch.testing.assert_close(_values(cache), torch.tensor([[1.0, 2.0], [1.1, 2.1]]))


def test_rows_of_different_lengths_are_written_where_they_end():
    cache = Cache.of(torch.full((2, 1, 3, 3), 7.0), torch.full((2, 1, 3, 3), -7.0))
    grown = _append(cache, 1, torch.tensor([1, 3]))
    assert _values(grown).tolist()[0][:2] == [7, 1]
    torch.testing.assert_close(_values(grown)[1], torch.tensor([7.0, 7.0, 7.0, 1.1]))
    assert torch.isfinite(_values(grown)).all()  # what no row has is no NaN
    assert _values(cache).tolist() == [[7.0] * 3] * 2


def test_fewer_columns_than_there_are_do_not_shorten_it():
    cache = Cache.of(torch.full((2, 1, 4, 3), 7.0), torch.full((2, 1, 4, 3), -7.0))
    assert _append(cache, 1, torch.tensor([0, 2])).columns == 4
