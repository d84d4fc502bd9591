"""A real browser for tests of pages: Chromium without a window, by Selenium."""

import contextlib
import json
import shutil
import time

import pytest

_SWITCHES = (
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
  "--hide-scrollbars",
  "--window-size=1400,1000",
)
PATIENCE = 180  # seconds for anything to appear, on a machine that is busy
_STARTS = 3


@contextlib.contextmanager
def opened(folder):
  """Gives a driver; skips, with a word, where there is no browser.

  Args:
    folder: empty, for the browser's own files.
  """
  webdriver = pytest.importorskip(
    "selenium.webdriver", reason="no selenium: pip install 'jaxmt[browser]'"
  )
  from selenium.webdriver.chrome.service import Service

  binary = shutil.which("chromium") or shutil.which("chromium-browser")
  driver = shutil.which("chromedriver")
  if not binary or not driver:
    pytest.skip("no chromium and chromedriver: apt-get install chromium-driver")
  options = webdriver.ChromeOptions()
  options.binary_location = binary
  for switch in (*_SWITCHES, f"--user-data-dir={folder}"):
    options.add_argument(switch)
  options.set_capability(
    "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
  )
  found = _started(webdriver, options, lambda: Service(driver))
  try:
    found.set_page_load_timeout(PATIENCE)
    found.set_script_timeout(PATIENCE)
    found.get("about:blank")
    for name in ("browser", "performance"):  # of the browser's own first page
      found.get_log(name)
    yield found
  finally:
    found.quit()


def _started(webdriver, options, service):
  """A browser; a busy machine may take longer than its driver waits for it."""
  from selenium.common.exceptions import WebDriverException

  for attempt in range(1, _STARTS + 1):
    try:
      return webdriver.Chrome(options=options, service=service())
    except WebDriverException:
      if attempt == _STARTS:
        raise
  return None


def visit(driver, url):
  """Opens a page and waits until it has drawn itself."""
  driver.get("about:blank")  # another part of the same page is a new visit, too
  driver.get(url)
  wait(driver, "return document.body.dataset.ready !== undefined")


def wait(driver, script):
  """Waits until a script gives something true; returns it."""
  end = time.monotonic() + PATIENCE
  while time.monotonic() < end:
    value = driver.execute_script(script)
    if value:
      return value
    time.sleep(0.05)
  raise AssertionError(f"never true: {script}; console: {console(driver)}")


def wait_texts(driver, selector, *expected):
  """Waits until the elements of a selector have these texts, in order."""
  texts = json.dumps(expected)
  wait(
    driver,
    f"const texts = [...document.querySelectorAll({json.dumps(selector)})]"
    f".map((e) => e.textContent); return JSON.stringify(texts) ==="
    f" JSON.stringify({texts})",
  )


def click(driver, selector):
  """Clicks the first element of a selector, wherever it is on the page."""
  from selenium.webdriver.common.by import By

  element = driver.find_element(By.CSS_SELECTOR, selector)
  driver.execute_script(
    "arguments[0].scrollIntoView({block: 'center'})", element
  )
  element.click()
  return element


def hover(driver, selector):
  """Points at the first element of a selector."""
  from selenium.webdriver.common.action_chains import ActionChains
  from selenium.webdriver.common.by import By

  element = driver.find_element(By.CSS_SELECTOR, selector)
  driver.execute_script(
    "arguments[0].scrollIntoView({block: 'center'})", element
  )
  ActionChains(driver).move_to_element(element).perform()
  return element


def console(driver):
  """What the page has said on the console."""
  return driver.get_log("browser")


def requests(driver):
  """The addresses that were asked for since the last call."""
  events = [
    json.loads(entry["message"])["message"]
    for entry in driver.get_log("performance")
  ]
  return [
    event["params"]["request"]["url"]
    for event in events
    if event["method"] == "Network.requestWillBeSent"
  ]
