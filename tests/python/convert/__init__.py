"""Tests of systole_convert."""
