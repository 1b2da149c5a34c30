"""The real JupyterLab in headless Chromium: run the lesson, move a control, press Run, see figure and verdict change."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import build_decks
import nbformat
import pytest
from playwright.sync_api import TimeoutError as TookTooLong
from playwright.sync_api import expect, sync_playwright

from labkit import labs

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = build_decks.chromium()
SETTINGS = ROOT / "scripts" / "jupyterlab"  # as `make lab` has them
TOKEN = "a-token-for-this-test"
PATIENCE = 180_000  # a machine that does other things as well takes its time
OWN_NOTEBOOKS = {
    "live": ["import labkit\n\nlabkit.lab('duplicate-data').panel(ranks=2, num_samples=1024, batch=4)"],
    "bar": [
        "import labkit\n\nprint('before')\nlabkit.lab('duplicate-data').run('fixed', ranks=2, num_samples=512).verdicts"
    ],
}
PANELS = {spec.slug: spec for spec in labs.specs() if spec.variants}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.ranks,
    pytest.mark.timeout(900),
    # playwright leaves its event loop's socket to the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_chromium_is_there_under_ci():
    assert CHROMIUM or not os.environ.get("CI"), "CI must install chromium (.ci/run does)"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory):
    """A JupyterLab of its own on a copy of the notebooks: notebook -> address. Ended, with its kernels, afterwards."""
    tmp_path = tmp_path_factory.mktemp("jupyter")
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    subprocess.run([sys.executable, ROOT / "scripts/lessons.py", "prepare", tmp_path / "notebooks/lessons"], check=True)
    panels = [nbformat.v4.new_code_cell(f"import labkit\n\nlabkit.lab({slug!r}).panel()") for slug in PANELS]
    theory = [nbformat.v4.new_code_cell("import labkit\n\nlabkit.lab('start-here').theory()")]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    own = {name: [nbformat.v4.new_code_cell(source) for source in sources] for name, sources in OWN_NOTEBOOKS.items()}
    for name, cells in {"panels": panels, "theory": theory, **own}.items():
        made = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
        nbformat.write(made, tmp_path / "notebooks" / f"{name}.ipynb")
    port = free_port()
    env = {
        **os.environ,
        "HOME": str(tmp_path),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
        "JUPYTER_DATA_DIR": str(tmp_path / "data"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        "LABKIT_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": str(ROOT),
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}", f"--IdentityProvider.token={TOKEN}", f"--LabApp.app_settings_dir={SETTINGS}",
        str(tmp_path / "notebooks"),
    ]  # fmt: skip
    log = (tmp_path / "jupyter.log").open("w")
    server = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        wait_for_server(f"http://127.0.0.1:{port}/api/status?token={TOKEN}", server)
        yield lambda name: f"http://127.0.0.1:{port}/lab/tree/{name}?token={TOKEN}"
    finally:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(15)
        server.kill()
        server.wait()
        log.close()


def wait_for_server(url: str, server: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.2)
    raise AssertionError("JupyterLab did not answer")


def test_a_learner_starts_from_the_page_of_the_course_and_sees_no_answer(jupyter, page, tmp_path):
    own = jupyter("lessons/Course.md").replace("/lab/tree/", "/lab/workspaces/learner/tree/")
    page.goto(own)  # else what it opens is opened again in the other tests
    page.get_by_role("link", name="03 · Who reads what").click(timeout=PATIENCE)
    page.locator(".jp-Notebook").wait_for(timeout=PATIENCE)
    kernel_is(page, "Idle")
    page.screenshot(path=tmp_path / "lesson.png")
    expect(page.locator(".jp-Notebook .jp-OutputArea-output")).to_have_count(0)
    expect(page.locator(".jp-OutputPlaceholder"), "nor the place of a folded one").to_have_count(0)


@pytest.fixture
def page(tmp_path):
    if not CHROMIUM:
        pytest.skip("no chromium here; apt-get install chromium, or set CHROMIUM to its path")
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path / "profile"),
            executable_path=CHROMIUM,
            headless=True,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            viewport={"width": 1400, "height": 1000},
        )
        yield context.pages[0]
        context.close()


def test_a_reader_runs_the_lesson_moves_a_control_and_sees_figure_and_verdict_change(jupyter, page, tmp_path):
    page.goto(alone(jupyter("03_duplicate_data.ipynb")))
    page.locator(".jp-Notebook").wait_for(timeout=PATIENCE)
    kernel_is(page, "Idle")
    expect(page.get_by_text("Jupyter news"), "nothing asks for the network, nor covers the page").to_have_count(0)

    run_all_cells(page)
    panel = page.locator(".jp-OutputArea-output .widget-vbox").filter(has=page.get_by_role("button", name="Run"))
    scroll_until(page, panel)
    run, stop = panel.get_by_role("button", name="Run"), panel.get_by_role("button", name="Stop")
    scroll_to_end(page)
    page.get_by_text("weights_equal_single = True").wait_for(timeout=PATIENCE)

    scroll_until(page, panel)
    run.click()
    panel.get_by_text(re.compile(r"^done in ")).wait_for(timeout=PATIENCE)
    image = panel.locator("img.widget-image")
    before = image.get_attribute("src")
    expect(panel.get_by_text("they do the work of one")).to_have_count(1)
    expect(panel.get_by_text("wastes 8,640")).to_have_count(1)

    panel.locator("select").first.select_option("fixed")
    panel.get_by_text("out of date: the figure is of variant broken").wait_for(timeout=PATIENCE)
    expect(image).to_have_css("opacity", "0.35")
    run.click()
    panel.get_by_text(re.compile(r"^done in ")).wait_for(timeout=PATIENCE)
    expect(image).not_to_have_attribute("src", before)
    expect(image).to_have_css("opacity", "1")
    expect(panel.get_by_text("they do the work of one")).to_have_count(0)
    expect(panel.get_by_text("No sample is read by two ranks")).to_have_count(1)
    page.screenshot(path=tmp_path / "panel.png")

    panel.locator("select").first.select_option("overlapping")
    run.click()
    panel.get_by_text(re.compile(r"ranks running")).wait_for(timeout=PATIENCE)
    stop.click()
    panel.get_by_text(re.compile(r"stopped after")).wait_for(timeout=PATIENCE)
    expect(run).to_be_enabled()
    expect(stop).to_be_disabled()


def test_the_panel_of_every_lab_runs_and_draws_each_of_its_figures(jupyter, page, tmp_path):
    page.goto(alone(jupyter("panels.ipynb")))
    page.locator(".jp-Notebook").wait_for(timeout=PATIENCE)
    kernel_is(page, "Idle")
    run_all_cells(page)
    for slug, spec in PANELS.items():
        panel = page.locator(".jp-OutputArea-output .widget-vbox").filter(has=page.get_by_text(spec.question, exact=True))
        scroll_until(page, panel)
        panel.get_by_role("button", name="Run").click()
        panel.get_by_text(re.compile(r"^(done in |✗ the run failed|✗ labkit itself)")).wait_for(timeout=PATIENCE)
        expect(panel.get_by_text(re.compile("^✗ (the run|labkit itself) failed")), slug).to_have_count(0)
        certain = spec.detectors[0] not in spec.timed_detectors  # of a speed a busy machine may say that it cannot tell
        said = re.compile("✗ found" if certain else r"✗ found|\? inconclusive")
        expect(panel.get_by_text(said).first, f"{slug}: broken is found to be broken").to_be_attached()
        page.screenshot(path=tmp_path / f"{slug}.png")
        image, state = panel.locator("img.widget-image"), panel.locator(".widget-html-content").nth(1)
        expect(image, slug).to_be_visible()
        for name in spec.figures[1:]:
            before = [image.get_attribute("src"), state.inner_text()]
            panel.locator("select").last.select_option(name)
            page.wait_for_function(DRAWN_OR_REFUSED, arg=[image.element_handle(), state.element_handle(), *before])
            if not image.is_visible():
                assert re.search(r"; (run|draw) ", state.inner_text()), (
                    f"{slug} {name} says what to do: {state.inner_text()}"
                )


def test_a_slider_of_the_theory_is_moved_by_keyboard_and_the_picture_follows_in_any_theme_and_width(jupyter, page, tmp_path):
    page.goto(alone(jupyter("theory.ipynb")))
    page.locator(".jp-Notebook").wait_for(timeout=PATIENCE)
    kernel_is(page, "Idle")
    run_all_cells(page)
    panel = page.locator(".lkm")
    panel.locator("svg").first.wait_for(timeout=PATIENCE)
    expect(panel.locator("svg")).to_have_count(2)
    expect(panel.get_by_text("on 8 ranks takes 17.8 ms")).to_have_count(1)
    page.screenshot(path=tmp_path / "theory-light.png")

    ranks = panel.get_by_role("slider", name="ranks (W)")
    ranks.focus()
    ranks.press("ArrowRight")
    expect(panel.get_by_text("on 16 ranks takes 19.3 ms"), "the kernel drew again").to_have_count(1, timeout=PATIENCE)
    expect(ranks).to_have_attribute("aria-valuetext", "16")
    expect(ranks, "the key moved the slider and not the notebook").to_be_focused()
    expect(panel.locator("svg").nth(1)).to_have_attribute("aria-label", re.compile("your ranks .*: 19.3 ms at 16"))
    panel.get_by_role("button", name="Back to the start").click()
    expect(panel.get_by_text("on 8 ranks takes 17.8 ms")).to_have_count(1, timeout=PATIENCE)

    light = ground_of(panel)
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.locator(".lm-Menu-item", has_text=re.compile("^Theme$")).hover()
    page.locator(".lm-Menu-item", has_text=re.compile("^JupyterLab Dark$")).click()
    expect(panel.locator("svg").first).to_have_class(re.compile(r"\bdark\b"), timeout=PATIENCE)
    assert ground_of(panel) != light
    page.screenshot(path=tmp_path / "theory-dark.png")
    page.set_viewport_size({"width": 700, "height": 1000})
    page.wait_for_timeout(500)
    page.screenshot(path=tmp_path / "theory-narrow.png")
    assert panel.evaluate("element => element.scrollWidth <= element.clientWidth + 1"), "nothing is cut off"


def ground_of(panel) -> str:
    return panel.locator("svg > rect").first.evaluate("element => getComputedStyle(element).fill")


def test_a_panel_moves_while_it_runs_then_pins_compares_and_stops_by_keyboard(jupyter, page, tmp_path):
    page.goto(alone(jupyter("live.ipynb")))
    page.locator(".jp-Notebook").wait_for(timeout=PATIENCE)
    kernel_is(page, "Idle")
    run_all_cells(page)
    panel = page.locator(".labkit-panel")
    run, stop = panel.get_by_role("button", name="Run"), panel.get_by_role("button", name="Stop")
    run.wait_for(timeout=PATIENCE)
    kernel_is(page, "Idle")
    stage, said = panel.locator(".lk-stage"), panel.locator(".lk-said").first
    seen = run_by_keyboard(page, panel)
    assert seen["most"] > 200 and seen["pictures"] > 5, f"lanes fill before the run ends: {seen}"
    page.screenshot(path=tmp_path / "after.png")

    stage.focus()
    page.keyboard.press("Home")
    expect(said).to_contain_text("Step 0 (the last is")
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("Step 1 (the last is")
    page.keyboard.press("Shift+ArrowRight")
    expect(said).to_contain_text(re.compile(r"into it: .*rank"))
    page.screenshot(path=tmp_path / "step.png")
    assert not re.search("null|undefined|NaN", hovered(page, stage)), "hovering says values, with units"

    panel.get_by_role("button", name="Pin").press("Enter")
    panel.get_by_text("Pinned: broken").wait_for(timeout=PATIENCE)
    panel.locator("select").first.select_option("fixed")
    run_by_keyboard(page, panel)
    words = panel.locator(".lk-words li")
    expect(words.first).to_have_text("Set differently: variant fixed (before: broken).")
    expect(words.filter(has_text="Do the ranks read the same data? Now: clear. Before: found.")).to_have_count(1)
    page.screenshot(path=tmp_path / "pinned.png")

    batch = panel.locator("input[type=number]").nth(1)
    batch.fill("1")  # more than a thousand steps: it still runs when it is stopped
    batch.press("Enter")
    run.press("Enter")
    panel.locator(".lk-state", has_text=re.compile(r"running, step \d")).wait_for(timeout=PATIENCE)
    expect(stop).to_be_enabled()
    stage.press("Escape")
    panel.get_by_text(re.compile(r"stopped after")).wait_for(timeout=PATIENCE)
    page.set_viewport_size({"width": 720, "height": 900})
    page.wait_for_timeout(500)
    assert stage.evaluate("e => e.scrollWidth <= e.clientWidth + 1"), "a narrow window cuts nothing off"
    page.screenshot(path=tmp_path / "narrow.png")


def alone(address: str) -> str:
    """The same page in a workspace of its own: else what other tests opened is opened again beside it."""
    name = address.partition("/lab/tree/")[2].partition(".")[0]
    return address.replace("/lab/tree/", f"/lab/workspaces/{name}/tree/")


def run_by_keyboard(page, panel) -> dict:
    """Press Run by Enter and wait for its end; gives the most dots that were coloured meanwhile, and how many pictures."""
    run = panel.get_by_role("button", name="Run")
    page.evaluate(WATCHED, run.element_handle())
    run.press("Enter")
    panel.get_by_text(re.compile("ranks? running|^done in ")).wait_for(timeout=PATIENCE)
    panel.get_by_text(re.compile("^done in ")).wait_for(timeout=PATIENCE)
    return page.evaluate("() => { clearInterval(window.watched.timer); return window.watched }")


WATCHED = """run => { const seen = window.watched = { most: 0, pictures: 0 };
  const stage = () => run.closest(".labkit-panel").querySelector(".lk-stage canvas");
  seen.timer = setInterval(() => {
    const canvas = stage();
    if (!run.disabled || !canvas || !canvas.width) return;
    seen.pictures = Number(run.closest(".labkit-panel").querySelector(".lk-live").dataset.frames);
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let coloured = 0;
    for (let at = 0; at < data.length; at += 4)
      coloured += Math.max(data[at], data[at + 1], data[at + 2]) - Math.min(data[at], data[at + 1], data[at + 2]) > 60;
    seen.most = Math.max(seen.most, coloured); }, 60); }"""


def hovered(page, stage) -> str:
    """All that the tooltip says as the pointer goes over the lanes."""
    box, said = stage.bounding_box(), set()
    for across in range(1, 12):
        for down in range(1, 8):
            page.mouse.move(box["x"] + box["width"] * across / 12, box["y"] + box["height"] * down / 8)
            tip = stage.locator(".lk-tip.lk-seen")
            said |= {tip.inner_text()} if tip.count() else set()
    assert any(re.search(r"rank \d, step \d+: .* (ms|µs|s), from", one) for one in said), said
    return " | ".join(said)


def test_a_cell_that_runs_a_lab_shows_how_far_it_is_and_stores_nothing_of_it(jupyter, page, tmp_path):
    page.goto(alone(jupyter("bar.ipynb")))
    page.locator(".jp-Notebook").wait_for(timeout=PATIENCE)
    kernel_is(page, "Idle")
    run_all_cells(page)
    bar = page.locator(".labkit-run-bar")
    bar.filter(has_text=re.compile("so far")).wait_for(timeout=PATIENCE)
    page.screenshot(path=tmp_path / "bar.png")
    page.locator(".jp-OutputArea-output", has_text="clear").first.wait_for(timeout=PATIENCE)
    expect(bar).to_have_count(0)
    kinds = page.locator(".jp-OutputArea-output").evaluate_all("all => all.map(each => each.dataset.mimeType)")
    assert kinds == ["application/vnd.jupyter.stdout", "text/html"]


DRAWN_OR_REFUSED = """([image, state, src, text]) => image.offsetParent
  ? image.src !== src && image.naturalWidth > 300 : state.innerText !== text"""


def run_all_cells(page) -> None:
    """Choose Run > Run All Cells until cells are seen waiting: while the kernel still starts, the choice may be lost."""
    for _ in range(8):
        page.wait_for_timeout(1_000)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.locator(".lm-Menu-item", has_text=re.compile("^Run All Cells$")).click()
        with contextlib.suppress(TookTooLong):
            page.locator(".jp-InputArea-prompt", has_text="[*]:").first.wait_for(timeout=4_000)
            return
    raise AssertionError("no cell was run")


def kernel_is(page, state: str) -> None:
    page.locator(".jp-StatusBar-TextItem", has_text=f"| {state}").first.wait_for(timeout=PATIENCE)


def scroll_until(page, locator) -> None:
    """JupyterLab keeps only the cells near the window in the page: scroll from the top until this one is there."""
    area = page.locator(".jp-WindowedPanel-outer").first
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        area.evaluate("element => element.scrollTo(0, 0)")
        for _ in range(60):
            if locator.count():
                locator.first.scroll_into_view_if_needed()
                return
            moved = area.evaluate("e => { const top = e.scrollTop; e.scrollBy(0, 500); return e.scrollTop > top }")
            page.wait_for_timeout(50)
            if not moved:
                break
        page.wait_for_timeout(500)
    raise AssertionError("not found on the page")


def scroll_to_end(page) -> None:
    area = page.locator(".jp-WindowedPanel-outer").first
    for _ in range(40):
        area.evaluate("element => element.scrollBy(0, 2000)")
        page.wait_for_timeout(50)
