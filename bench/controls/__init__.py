"""What ``control`` measures with: routing tables of any size, and a control plane of any size without model servers."""
