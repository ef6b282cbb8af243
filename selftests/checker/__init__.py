# SPDX-License-Identifier: GPL-2.0
"""Judge captures of RoCEv2 traffic: does every queue pair follow the InfiniBand specification?"""
