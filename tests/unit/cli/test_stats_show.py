"""Numbers in tables."""

import pytest

from seqtools.cli._stats_show import Percent, _plain


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.00 %"),
        (1.0, "100.00 %"),
        (0.12345, "12.35 %"),
        (0.001, "0.10 %"),
        (0.000456, "0.046 %"),
        (3.448e-05, "0.0034 %"),
        (1e-9, "0.00000010 %"),
    ],
)
def test_a_share_is_a_percentage(share, text):
    assert _plain(Percent(share)) == text
