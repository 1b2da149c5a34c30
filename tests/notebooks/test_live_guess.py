"""A guess in a real kernel: with somebody before the page, and without."""

import pytest
from jupyter_client.manager import start_new_kernel

pytestmark = pytest.mark.timeout(120)
ASK = "from labkit.view import lesson\nguess = lesson.Prediction('How many?', unit='samples', high=200)\nguess"
REVEAL = "guess.reveal(187)"


@pytest.fixture(scope="module")
def client():
    manager, client = start_new_kernel(kernel_name="python3")
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(client, code, somebody):
    """What a cell displays: the data of its outputs, and all that was sent to widgets."""
    outputs, comms = [], []

    def keep(message):
        if message["msg_type"] in ("display_data", "execute_result"):
            outputs.append(message["content"]["data"])
        if message["msg_type"].startswith("comm_"):
            comms.append(str(message["content"]))

    reply = client.execute_interactive(code, allow_stdin=somebody, output_hook=keep, timeout=60)
    assert reply["content"]["status"] == "ok", reply["content"]
    return outputs, "".join(comms)


def test_the_number_goes_to_the_page_when_somebody_guessed_and_folded_when_nobody_is_there(client):
    (question,), _ = run(client, ASK, somebody=False)
    assert "Run this cell" in question["text/html"]
    (folded,), _ = run(client, REVEAL, somebody=False)
    assert "<details><summary>Reveal" in folded["text/html"] and "187 samples" in folded["text/html"]
    (_, box), _ = run(client, ASK, somebody=True)
    assert "application/vnd.jupyter.widget-view+json" in box
    (waiting,), sent = run(client, REVEAL, somebody=True)
    assert "application/vnd.jupyter.widget-view+json" in waiting and "187" not in str(waiting["text/plain"])
    assert "187 samples" not in sent
    _, sent = run(client, "guess.entry()._text.value = '30'", somebody=True)
    assert "You said 30 samples; measured: 187 samples." in sent
