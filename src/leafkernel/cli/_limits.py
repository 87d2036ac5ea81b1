"""Numbers that options and the code behind them share."""

MIN_ROWS = 10  # fewer are not enough to grow a forest
