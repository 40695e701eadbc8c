"""From a continuous statement to a checked plan and its job."""
