"""What there is to compute on: cores, devices, memory."""
