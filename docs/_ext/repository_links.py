"""Links of pages that are read in the repository as well, made to fit the site.

A link to an example becomes a link to its page in the gallery. Other files of the repository are
not on the site: their links become plain text.
"""

import re


def adapt(app, docname, source):
    """Rewrite the links of a page that lead out of docs/."""
    if app.env.doc2path(docname).suffix != ".md":
        return
    depth = docname.count("/")
    outside = re.compile(r"\[([^\[\]]+)\]\(" + r"\.\./" * (depth + 1) + r"([^)\s#]+)[^)]*\)")

    def on_site(found):
        text, path = found.groups()
        if path.startswith("examples/") and path.endswith(".py"):
            return f"[{text}]({'../' * depth}gallery/{path[len('examples/') : -3]}.rst)"
        return text

    # Doctest needs the empty line at the end of a block; readers do not.
    source[0] = outside.sub(on_site, source[0]).replace("\n\n```\n", "\n```\n")


def adapt_included(app, path, docname, source):
    """Rewrite the links of a page of the repository's root, such as the change log."""
    text = re.sub(r"\]\(docs/", "](", source[0])
    source[0] = re.sub(r"\[([^\[\]]+)\]\([A-Z_]+\.(?:md|cff)\)", r"\1", text)


def setup(app):
    app.connect("source-read", adapt)
    app.connect("include-read", adapt_included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
