"""Methods that learn weights from candidate lists."""
