"""Makes the pictures of the documentation from real models, in a real browser.

python tools/screenshots.py --translation en-de --text "A dog runs." --vision digits --image seven.png --run en-de
python tools/screenshots.py --claims docs/claims/claims.html
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from PIL import Image
from selenium.webdriver import Chrome

from chromium import running_chromium, save_picture, set_dark, set_screen
from server_page import Page
from server_process import serving

MOST_BYTES = 300_000
SCALE = 2
# Seconds after which everything that moves while a page is drawn has come to rest.
REST = 0.6
EXISTING = click.Path(exists=True, path_type=Path)


@click.command()
@click.option("--translation", type=EXISTING, help="Folder of a translation model.")
@click.option("--text", default="A dog runs.", show_default=True, help="What it translates.")
@click.option("--word", default=3, show_default=True, help="Which word of the translation is clicked, counted from 1.")
@click.option("--vision", type=EXISTING, help="Folder of an image classifier, for vision.png and attention-image.png.")
@click.option("--image", type=EXISTING, help="What it looks at.")
@click.option(
    "--resolution", type=int, help="The size of attention-image.png's image; by default that of the training."
)
@click.option("--run", type=EXISTING, help="Folder of a training run, for training.png.")
@click.option("--claims", type=EXISTING, help="The page of heedful claims, for claims.png.")
@click.option("--claim", default="saturation", show_default=True, help="The claim that claims.png shows.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("docs/images"), show_default=True)
def main(
    translation: Path | None,
    text: str,
    word: int,
    vision: Path | None,
    image: Path | None,
    resolution: int | None,
    run: Path | None,
    claims: Path | None,
    claim: str,
    out: Path,
) -> None:
    """Draw page.png, page-phone.png, attention.png and explain.png, and the others, where their models are given."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder)) as driver:
        made = Path(folder) / "page.html"
        if translation:
            with serving([translation]) as address:
                for name, width, height in (("page", 1280, 720), ("page-phone", 390, 844)):
                    set_screen(driver, width, height, SCALE)
                    click_a_word(Page(driver, address), translation.name, text, word)
                    save(driver, out / f"{name}.png")
            heedful("inspect", translation, text, "--out", made)
            draw_file(driver, made, out / "attention.png")
            heedful("explain", translation, text, "--out", made)
            follow_a_token(driver, made)
            save(driver, out / "explain.png")
        if vision and image:
            with serving([vision]) as address:
                look_at_image(Page(driver, address), vision.name, image)
                save(driver, out / "vision.png")
            sized = ("--resolution", str(resolution)) if resolution else ()
            heedful("inspect", vision, "--image", image, *sized, "--out", made)
            set_dark(driver, True)
            draw_file(driver, made, out / "attention-image.png")
            set_dark(driver, False)
        if run:
            heedful("inspect", run, "--training", "--out", made)
            draw_file(driver, made, out / "training.png")
        if claims:
            show_claim(driver, claims, claim)
            save(driver, out / "claims.png")


@contextmanager
def browser(folder: Path) -> Iterator[Chrome]:
    """A browser that prefers light colours, without scroll bars."""
    with running_chromium(folder / "profile") as driver:
        set_dark(driver, False)
        driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        yield driver


def heedful(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "heedful", *map(str, arguments)], check=True)


def click_a_word(page: Page, model: str, text: str, word: int) -> None:
    """Show a translation, with the alternatives of one of its words."""
    page.open(model)
    page.type(text)
    page.output()
    page.all(".word")[word - 1].click()
    page.wait(lambda: page.all(".choices .choice") and page.all(".field-marks mark"))


def look_at_image(page: Page, model: str, image: Path) -> None:
    """Show an image with its labels, and the attention over it."""
    set_screen(page.driver, 1280, 900, SCALE)
    page.open(model)
    page.one("input[type=file]").send_keys(str(image.resolve()))
    page.wait(lambda: page.all(".ranking-label"))
    page.button("Attention").click()
    page.wait(lambda: page.all(".attention-place:not([aria-busy]) .stage-heat"))


def follow_a_token(driver: Chrome, page: Path) -> None:
    """Show the softmax of a decoder's attention to the source, in a step in the middle."""
    set_screen(driver, 1280, 900, SCALE)
    driver.get(page.resolve().as_uri())
    blocks = driver.find_elements("css selector", ".explain-box.is-block[data-part^=decoder]")
    blocks[-1].click()
    tokens = driver.find_elements("css selector", ".explain-token")
    tokens[len(tokens) // 2].click()
    # From near to far: what is painted on the way moves what is below it.
    for _ in range(3):
        step = driver.find_element("css selector", "[data-step$='cross_attention.weights']")
        driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", step)
        time.sleep(REST)


def show_claim(driver: Chrome, page: Path, claim: str) -> None:
    """Show a claim of the page from its heading on."""
    set_screen(driver, 1280, 900, SCALE)
    driver.get(page.resolve().as_uri())
    driver.execute_script("arguments[0].scrollIntoView()", driver.find_element("id", claim))


def draw_file(driver: Chrome, page: Path, picture: Path) -> None:
    """Save the upper part of a page that is a file."""
    set_screen(driver, 1280, 900, SCALE)
    driver.get(page.resolve().as_uri())
    save(driver, picture)


def save(driver: Chrome, picture: Path) -> None:
    """Save what the screen shows, with fewer colours where the file would be large."""
    time.sleep(REST)
    save_picture(driver, picture)
    shown = Image.open(io.BytesIO(picture.read_bytes())).convert("RGB")
    shown.save(picture, optimize=True)
    if picture.stat().st_size > MOST_BYTES:
        shown.quantize(256, dither=Image.Dither.NONE).save(picture, optimize=True)
    click.echo(f"{picture}: {shown.width} x {shown.height}, {picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
