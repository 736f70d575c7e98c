"""
An explorer of schedules: real code, a real Valkey and a real database, in all orders up to a bound.

Actors stand for processes. Each is stopped before each message to Redis and each statement. A
schedule says who goes on, and what fails. ``explorer.py`` says how schedules are counted, what is
left out, and why nothing is missed by that.
"""
