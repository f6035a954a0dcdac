"""CPython's own executor tests, run against ``Pool``.

``source`` finds the tests, ``selection`` and ``cases`` decide which of them run where, ``batch``
runs them in processes of their own, ``inside`` is what runs in those processes. No CPython code
lives here: the tests are always read from a Python installation or a distribution's package.
"""
