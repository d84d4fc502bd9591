"""The report in a real browser: opened from disk, clicked, pointed at."""

import pytest

from jaxmt.report import html, page, views
from tests.reference import tiny_report
from tests.report import browser


@pytest.fixture(scope="module")
def address(tmp_path_factory):
  path = tmp_path_factory.mktemp("page") / "report.html"
  path.write_text(tiny_report.page(), encoding="utf-8")
  return path.as_uri()


@pytest.fixture(scope="module")
def phrase_address(tmp_path_factory):
  path = tmp_path_factory.mktemp("phrases") / "report.html"
  path.write_text(tiny_report.page(phrases=True), encoding="utf-8")
  return path.as_uri()


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
  with browser.opened(tmp_path_factory.mktemp("profile")) as found:
    yield found


@pytest.fixture(autouse=True)
def silent(driver):
  """Nothing was run, nothing was complained about, nothing was asked for."""
  yield
  assert driver.execute_script("return window.hurt") is None
  assert browser.console(driver) == []
  outside = [
    url
    for url in browser.requests(driver)
    if not url.startswith(("file:", "data:", "about:", "blob:"))
  ]
  assert outside == []


@pytest.fixture(scope="module")
def tree_address(tmp_path_factory):
  """A report that came with a section of its own."""
  tree = views.DependencyView(words=["a", "b"], trees=[("t", [1, -1], [])])
  given = page.section("Trees over phrases: t", html.drawn(tree))
  start = '<main id="report">'
  path = tmp_path_factory.mktemp("trees") / "report.html"
  text = tiny_report.page().replace(start, start + given)
  path.write_text(text, encoding="utf-8")
  return path.as_uri()


def texts(driver, selector):
  return driver.execute_script(
    "return [...document.querySelectorAll(arguments[0])]"
    ".map((e) => e.textContent)",
    selector,
  )


def show(driver, address, number):
  """Opens a sentence in detail."""
  browser.visit(driver, f"{address}#sentences/{number}")
  browser.wait(
    driver,
    "return document.querySelector('#sentence h2')?.textContent"
    f" === 'Sentence {number}'",
  )


@pytest.mark.parametrize(
  "name",
  ["overview", "sentences", "tuning", "training", "search", "data", "config"],
)
def test_every_section_opens(driver, address, name):
  browser.visit(driver, f"{address}#{name}")
  shown = driver.execute_script(
    "return [...document.querySelectorAll('main > section')]"
    ".filter((s) => !s.hidden).map((s) => s.id)"
  )
  assert shown == [name]
  assert len(texts(driver, f"#{name}")[0]) > 20
  wide = driver.execute_script(
    "return document.documentElement.scrollWidth - window.innerWidth"
  )
  assert wide <= 0  # nothing makes the page wider than the window


def test_sections_that_the_page_came_with_are_opened_by_name(
  driver, tree_address
):
  visible = (
    "return [...document.querySelectorAll('main > section')]"
    ".filter((s) => !s.hidden).map((s) => s.id)"
  )
  browser.visit(driver, tree_address)
  assert driver.execute_script(visible) == ["overview"]
  assert texts(driver, "nav button")[-1] == "Trees over phrases: t"
  browser.click(driver, "#tab-more-1")
  browser.wait(driver, "return location.hash === '#more-1'")
  browser.wait(driver, "return !document.querySelector('#more-1').hidden")
  assert driver.execute_script(visible) == ["more-1"]
  assert len(texts(driver, "#more-1 svg path")) == 2


def test_tables_sort(driver, address):
  browser.visit(driver, f"{address}#overview")
  column = "#overview table:first-of-type tbody td:first-child"
  before = texts(driver, column)[:2]
  browser.click(driver, "#overview table th button")
  assert texts(driver, column)[:2] == sorted(before)
  browser.click(driver, "#overview table th button")
  assert texts(driver, column)[:2] == sorted(before, reverse=True)


def test_filters_choose_sentences(driver, address):
  browser.visit(driver, f"{address}#sentences")
  every = len(tiny_report.SOURCES)
  assert texts(driver, "#sentence-count") == [f"{every} of {every} sentences"]
  browser.click(driver, "#filter-unknown")
  count = texts(driver, "#sentence-count")[0]
  assert count == f"4 of {every} sentences"
  browser.click(driver, "#filter-text").send_keys("<SCRIPT>")
  assert texts(driver, "#sentence-count") == [f"1 of {every} sentences"]
  assert tiny_report.SCRIPT in texts(driver, ".list .item")[0]


def test_the_order_follows_the_menu_and_turns(driver, address):
  browser.visit(driver, f"{address}#sentences")
  driver.execute_script(
    "const m = document.getElementById('sort');"
    "m.selectedIndex = 3; m.dispatchEvent(new Event('change'))"
  )
  assert "400 words" in texts(driver, ".list .item")[0]
  browser.click(driver, "#turn")
  assert "0 words" in texts(driver, ".list .item")[0]


def test_keys_walk_through_sections_and_sentences(driver, address):
  from selenium.webdriver.common.by import By
  from selenium.webdriver.common.keys import Keys

  browser.visit(driver, address)
  body = driver.find_element(By.TAG_NAME, "body")
  body.send_keys("2")
  browser.wait(driver, "return document.querySelector('#sentence h2')")
  first = driver.execute_script("return location.hash")
  driver.find_element(By.CSS_SELECTOR, ".list").send_keys(Keys.ARROW_DOWN)
  browser.wait(driver, f"return location.hash !== '{first}'")
  body.send_keys("k")
  browser.wait(driver, f"return location.hash === '{first}'")
  body.send_keys("/")
  browser.wait(driver, "return document.activeElement.id === 'filter-text'")


def test_pointing_at_a_rule_marks_its_words_everywhere(driver, address):
  show(driver, address, 1)
  assert not texts(driver, ".w.hot")
  browser.hover(driver, ".derivation .node[data-span='4-5'] .rule")
  browser.wait(driver, "return document.querySelector('.w.hot')")
  marked = texts(driver, ".derivation .words:first-child .w.hot")
  # In the derivation pointed at, and in the others.
  assert len(marked) >= 2 and set(marked) == {"alt"}
  assert "old" in texts(driver, ".derivation .words:last-child .w.hot")


def test_rules_of_one_derivation_only_are_marked(driver, address):
  show(driver, address, 3)
  only = texts(driver, ".why table tbody td:nth-child(2) .rule")
  panel = "#sentence .columns > .panel:nth-child({})"
  found = [
    texts(driver, f"{panel.format(n)} .node.other > .head .rule")
    for n in (1, 2, 3)
  ]
  assert found[0] and found[1] and not found[2]
  # A derivation may use a rule more than once.
  assert {*found[0], *found[1]} == set(only)


def test_word_links_lead_from_word_to_word(driver, address):
  show(driver, address, 1)
  gaps = browser.wait(
    driver,
    """
    const strip = document.querySelector('.derivation .strip');
    const left = strip.querySelector('svg').getBoundingClientRect().left;
    const [above, below] = strip.querySelectorAll('.words');
    const middle = (e) => { const b = e.getBoundingClientRect();
      return b.left + b.width / 2 - left; };
    const lines = [...strip.querySelectorAll('line')];
    // Lines are placed when the layout is known.
    return lines.every((l) => l.hasAttribute('x2')) && lines.map((l) => [
      l.getAttribute('x1') - middle(above.children[l.dataset.s]),
      l.getAttribute('x2') - middle(below.children[l.dataset.t])]);
    """,
  )
  assert len(gaps) >= 4
  assert all(abs(x) < 1 and abs(y) < 1 for x, y in gaps)


def test_a_rule_opens_its_features(driver, address):
  show(driver, address, 1)
  button = browser.click(driver, ".derivation .node .open")
  assert button.get_attribute("aria-expanded") == "true"
  rows = texts(driver, ".derivation .node table tbody tr td:first-child")
  assert "LanguageModel" in rows
  browser.click(driver, ".derivation .node .fold")
  folded = driver.execute_script(
    "return document.querySelector('.derivation .node ul').hidden"
  )
  assert folded


def test_the_page_says_why_a_translation_changed(driver, address):
  show(driver, address, 3)
  (verdict,) = texts(driver, ".why .verdict")
  assert verdict.startswith("What turned the choice: ")
  story = " ".join(texts(driver, ".why ul li"))
  assert "primary prefers its own translation by" in story
  assert "augmented-forest prefers its own translation by" in story
  # Two times two scores: old and new probabilities and weights.
  cases = texts(driver, ".why .cases tbody td")
  assert len(cases) == 4
  assert cases[0].startswith("primary's by") and "(primary)" in cases[0]
  assert cases[3].startswith("augmented-forest's by")
  # The rule whose probability training lowered, and where training saw it.
  (moved,) = texts(driver, ".why .moved")
  assert moved.startswith("das X0 haus → that X0 house in primary's")
  assert "0.500 → 0.184" in moved
  assert "das ist ein haus ‖ that is a house" in moved
  browser.click(driver, ".why details summary")
  assert "log probability of the target words" in " ".join(
    texts(driver, ".why details dd")
  )
  assert texts(driver, ".why table tbody td:first-child")


def test_the_overview_says_what_turned_the_translations(driver, address):
  browser.visit(driver, f"{address}#overview")
  browser.wait(driver, "return document.querySelector('#turned table')")
  counts = [int(one) for one in texts(driver, "#turned td:nth-child(3)")]
  lines = list(zip(*tiny_report.lines(), strict=True))
  assert sum(counts) == sum(one != two for one, two in lines)
  first = texts(driver, "#turned li a")[0]
  browser.click(driver, "#turned li a")
  browser.wait(
    driver,
    "return document.querySelector('#sentence h2')?.textContent.toLowerCase()"
    f" === '{first}'",
  )


def test_sentences_are_filtered_by_what_turned_them(driver, address):
  browser.visit(driver, f"{address}#sentences")
  counts = []
  for kind in range(7):
    driver.execute_script(
      "document.getElementById('sentence-count').textContent = '';"
      "const m = document.getElementById('cause');"
      f"m.selectedIndex = {kind}; m.dispatchEvent(new Event('change'))"
    )
    text = browser.wait(
      driver,
      "return document.getElementById('sentence-count').textContent",
    )
    counts.append(int(text.split()[0]))
  lines = list(zip(*tiny_report.lines(), strict=True))
  assert counts[0] == len(lines)
  assert sum(counts[1:]) == sum(one != two for one, two in lines)


def test_a_cell_shows_its_beam(driver, address):
  show(driver, address, 1)
  browser.click(driver, ".chart .cell[data-cell='0-1-0']")
  browser.wait_texts(driver, ".chart .panel h3", "Cell 0–1: das")
  assert "the" in texts(driver, ".chart .panel tbody td:last-child")
  from selenium.webdriver.common.action_chains import ActionChains
  from selenium.webdriver.common.keys import Keys

  ActionChains(driver).send_keys(Keys.ARROW_RIGHT).perform()
  browser.wait_texts(driver, ".chart .panel h3", "Cell 1–2: kleine")


def test_the_cell_of_the_largest_violation_is_open(driver, address):
  show(driver, address, 3)
  names = texts(driver, ".chart [aria-label='follow'] button")
  assert names == ["reference", "augmented-forest", "primary"]
  driver.execute_script(
    "document.querySelectorAll(\".chart [aria-label='follow'] button\")[2]"
    ".click()"
  )
  (summary,) = texts(driver, ".chart > p.small:not(.faint)")
  place = summary.rstrip(".").split()[-1]
  assert "largest violation" in summary
  assert len(texts(driver, ".chart .ring.worst")) == 1
  browser.click(driver, f".chart .cell[data-cell^='{place.replace('–', '-')}']")
  assert texts(driver, ".chart .panel h3")[0].split(":")[0].endswith(place)


def test_a_slider_ranks_the_list_anew(driver, address):
  show(driver, address, 1)
  order = (
    "return [...document.querySelectorAll('.kbest tbody tr')]"
    ".map((r) => r.dataset.candidate)"
  )
  before = driver.execute_script(order)
  assert before == sorted(before, key=int)
  for value in (-1, 1):
    driver.execute_script(
      "const s ="
      " document.querySelector(\"input[data-feature='LanguageModel']\");"
      f"s.value = {value} * s.max; s.dispatchEvent(new Event('input'))"
    )
    if driver.execute_script(order) != before:
      break
  after = driver.execute_script(order)
  assert after != before and sorted(after) == sorted(before)
  browser.click(driver, ".kbest p button")
  assert driver.execute_script(order) == before


@pytest.mark.parametrize("number", [3, 4, 5, 6, 7, 8])
def test_strange_text_is_shown_and_stays_in_its_place(driver, address, number):
  show(driver, address, number)
  source = texts(driver, "#sentence .source-text")
  assert source == [tiny_report.SOURCES[number - 1]]
  wide = driver.execute_script(
    "return document.documentElement.scrollWidth - window.innerWidth"
  )
  assert wide <= 0


def test_it_prints(driver, address):
  browser.visit(driver, address)
  driver.execute_script("document.body.dataset.theme = 'dark'")
  driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
  colour = driver.execute_script(
    "return getComputedStyle(document.body).backgroundColor"
  )
  driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
  assert colour == "rgb(255, 255, 255)"  # paper is white, whatever the theme
  made = driver.execute_cdp_cmd("Page.printToPDF", {})
  assert len(made["data"]) > 10_000


def test_dark_and_light_differ(driver, address):
  browser.visit(driver, address)
  colour = "return getComputedStyle(document.body).backgroundColor"
  seen = set()
  for _ in range(3):
    seen.add(driver.execute_script(colour))
    browser.click(driver, "header > button")
  assert len(seen) == 2


def test_a_phrase_table_shows_stacks_and_its_lattice(driver, phrase_address):
  show(driver, phrase_address, 1)
  heads = texts(driver, "#sentence h2")
  assert "Search: the stacks" in heads and "Phrase lattice" in heads
  browser.click(driver, ".chart .cell[data-cell='0-2-1']")
  assert texts(driver, ".chart .panel h3") == ["Stack of 2 covered words"]
  assert texts(driver, ".chart .panel tbody td:last-child")
  best = texts(driver, ".graph path.best title")
  assert best and all("(" in one for one in best)
  # Phrases stand in the order they are said, and say the translation.
  said = texts(driver, ".derivation:first-of-type .words:last-child .w")
  text = texts(driver, "#sentence .texts dd")[2]
  assert text.startswith(" ".join(said[: len(text.split())])[:10])
  browser.visit(driver, f"{phrase_address}#search")
  assert "hypotheses per stack, mean" in texts(driver, "#search figcaption")


def test_a_parsed_sentence_shows_its_dependencies(driver, phrase_address):
  show(driver, phrase_address, 1)
  heads = texts(driver, "#sentence h2")
  assert heads.index("Source dependencies") > heads.index("Source parse")
  arcs = texts(driver, "#sentence svg[aria-label^=dependency] path title")
  assert "haus → das: DT" in arcs and len(arcs) == 4
  show(driver, phrase_address, 2)
  assert "Source dependencies" not in texts(driver, "#sentence h2")
