from labkit.record.table import Table
from labkit.view.folded import Folded


def test_a_folded_table_waits_behind_its_title_and_is_whole_in_text():
    table = Table("Bytes", ("what", "bytes"), (("weights", "4"), ("moments", "8")), notes=())
    folded = Folded("Where each <byte> goes", table)
    page = folded._repr_html_()
    assert page.startswith("<details><summary>Where each &lt;byte&gt; goes</summary>") and page.endswith("</details>")
    assert table._repr_html_() in page and "moments" in page
    assert repr(folded) == f"Where each <byte> goes\n{table!r}" and "moments" in repr(folded)
