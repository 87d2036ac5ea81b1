"""Formulas as MathML, made when the site is built: readers' browsers need no script for them."""

import re

from docutils import nodes
from latex2mathml.converter import convert

# Browsers draw a prime that stands beside its letter better than one that is raised again, and
# know no double-struck variant of a number.
PRIME = re.compile(r"<msup>(<mi>\w</mi>)<mi>&#x02032;</mi></msup>")
ONE = '<mn mathvariant="double-struck">1</mn>'


def mathml(latex, display):
    text = PRIME.sub(r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>', convert(latex))
    return text.replace(ONE, "<mn>&#x1D7D9;</mn>").replace('"inline"', f'"{display}"', 1)


def inline(self, node):
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block(self, node):
    self.body.append(f'<div class="math-block">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer(
        "mathml", inline_renderers=(inline, None), block_renderers=(block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
