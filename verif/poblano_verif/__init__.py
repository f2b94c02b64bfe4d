"""cocotb drivers, monitors, scoreboards and benches."""
