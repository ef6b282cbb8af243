# SPDX-License-Identifier: GPL-2.0
"""Judges captures of RoCEv2 traffic: does every queue pair do what the InfiniBand specification asks of it?"""
