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


def _uneven():
    """Rows of 1 and 3 inputs, and what a prefix left behind the first row's."""
    keys = torch.tensor([[1.0, 8.0, 9.0], [1.0, 2.0, 3.0]])[:, None, :, None].expand(2, 1, 3, 3)
    return Cache.of(keys, -keys)


def test_rows_of_different_lengths_are_written_where_they_end():
    grown = _append(_uneven(), 5, torch.tensor([1, 3]))
    again = _append(grown, 6, torch.tensor([2, 4]))
    first, second = _values(again)
    assert first[:3].tolist() == [1, 5, 6]
    torch.testing.assert_close(second, torch.tensor([1.0, 2.0, 3.0, 5.1, 6.1]))
    assert torch.isfinite(first).all()  # what no row has is no NaN


def test_caches_of_rows_of_different_lengths_keep_their_inputs():
    first = _uneven()
    left = _append(first, 5, torch.tensor([1, 3]))
    right = _append(first, 6, torch.tensor([1, 3]))
    again = _append(left, 7, torch.tensor([2, 4]))
    for cache, row in ((first, [1]), (left, [1, 5]), (right, [1, 6]), (again, [1, 5, 7])):
        assert _values(cache)[0, : len(row)].tolist() == row
    for cache, row in ((first, [1, 2, 3]), (left, [1, 2, 3, 5.1]), (right, [1, 2, 3, 6.1])):
        torch.testing.assert_close(_values(cache)[1, : len(row)], torch.tensor(row).float())
    assert left.keys.data_ptr() == first.keys.data_ptr()  # the first to go ahead copies nothing
    assert right.keys.data_ptr() != first.keys.data_ptr()


def test_rows_all_shorter_than_the_columns_are_written_where_they_end():
    short = _uneven().select(torch.tensor([0, 0]))
    grown = _append(short, 5, torch.tensor([1, 1]))
    torch.testing.assert_close(_values(grown)[:, :2], torch.tensor([[1.0, 5.0], [1.0, 5.1]]))
    assert torch.isfinite(_values(grown)).all()
