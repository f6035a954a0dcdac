"""Types: a future has the type of what its task returns. mypy reads this file; running it shows that.

A `type: ignore` here is a mistake that mypy must find.
"""

from concurrent.futures import Executor, Future
from typing import assert_type

from millpond import Pool
from tests.pool.tasks import PATIENCE


def double(number: int) -> int:
    return 2 * number


async def double_later(number: int) -> int:
    return 2 * number


def test_the_future_of_a_function_and_of_an_async_function_have_its_result() -> None:
    with Pool(1) as pool:
        plain, later = pool.submit(double, 2), pool.submit(double_later, number=2)
        assert_type(plain, Future[int])
        assert_type(later, Future[int])
        assert (plain.result(PATIENCE), later.result(PATIENCE)) == (4, 4)


def test_map_yields_results_of_functions_and_of_async_functions() -> None:
    with Pool(1) as pool:
        assert_type(next(pool.map(double, [1])), int)
        assert_type(next(pool.map(double_later, [1])), int)
        assert list(pool.map(double_later, [1, 2])) == [2, 4]


def test_what_map_returns_is_its_own_iterator() -> None:
    with Pool(1) as pool:
        for count in (1, 3, 200):
            values = pool.map(double, range(count))
            assert iter(values) is values
            assert list(values) == [2 * number for number in range(count)]


def test_a_pool_goes_where_an_executor_goes() -> None:
    def use(executor: Executor) -> Future[int]:
        return executor.submit(double, 4)

    with Pool(1) as pool:
        assert use(pool).result(PATIENCE) == 8
        wrong = pool.submit(double)  # type: ignore[call-overload]
        assert isinstance(wrong.exception(PATIENCE), TypeError)
