"""The engine's side of the control plane: driver processes and the analyzer's queue."""
