"""The script that a GPU machine runs: what it passes on."""

import pytest

from load.reranker_bench import main


def test_an_unknown_device_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--device", "abacus"])
    assert ended.value.code == 2
    assert "'cpu'" in capsys.readouterr().err


@pytest.mark.slow
def test_without_a_gpu_nothing_is_measured_and_the_exit_code_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    assert main(["--device", "cuda", "--pairs", "100"]) == 4
    out, err = capfd.readouterr()
    assert '"value": null' in out
    assert "CUDA" in err
