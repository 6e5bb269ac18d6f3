internal import Foundation

/// A page of HTML that needs nothing else: no scripts, no fonts, no network.
///
/// Light and dark follow the reader's system.
struct Page {
    /// The whole page.
    let html: String

    /// Makes a page; what comes from outside is escaped in `body` already.
    init(title: String, body: String) {
        html = """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>\(escaped(title))</title>
            <style>\(style)</style>
            </head>
            <body>
            <h1>\(escaped(title))</h1>
            \(body)
            </body>
            </html>

            """
    }

    /// A table of two columns under a headline; nothing where it has no rows.
    static func table(_ title: String, _ rows: [(String, String)]) -> String {
        guard !rows.isEmpty else { return "" }
        let cells = rows.map { "<tr><th>\(escaped($0.0))</th><td>\(escaped($0.1))</td></tr>" }.joined(separator: "\n")
        return "<h2>\(escaped(title))</h2>\n<table>\n\(cells)\n</table>"
    }
}

/// A text as HTML shows it.
func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
        .replacing("\"", with: "&quot;")
}

private let style = """
    :root { color-scheme: light dark; --ink: #1c2430; --paper: #fdfcfa; --faint: #d9d6d0; --first: #8a5a2b; --second: #2b6a8a }
    @media (prefers-color-scheme: dark) {
      :root { --ink: #e6e3dd; --paper: #16191d; --faint: #3a3f46; --first: #d9a066; --second: #6bb5d9 }
    }
    body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 56rem;
      margin: 2rem auto; padding: 0 1rem }
    h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
    .figure { font-size: 2.4rem; margin: .5rem 0 } .figure span { font-size: 1rem }
    .charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1.5rem }
    svg { width: 100%; height: auto }
    .grid { stroke: var(--faint) } .axis { font-size: 11px; fill: var(--ink) } .title { font-size: 13px; fill: var(--ink) }
    .end { text-anchor: end } .middle { text-anchor: middle }
    polyline { fill: none; stroke-width: 2 }
    .line0 { stroke: var(--first) } .line1 { stroke: var(--second) } .dot0, .name0 { fill: var(--first) }
    .dot1, .name1 { fill: var(--second) }
    table { border-collapse: collapse; width: 100% }
    th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--faint); vertical-align: top;
      overflow-wrap: anywhere }
    th { font-weight: 600; white-space: nowrap }
    .bars { display: grid; grid-template-columns: minmax(4rem, max-content) 1fr max-content; gap: .4rem .8rem; align-items: center }
    .bars span { overflow-wrap: anywhere } .bar { display: flex; height: .9rem } .bar i { background: var(--first); height: 100% }
    .bar i + i { background: var(--second) }
    .contents { columns: 2 18rem; padding: 0; list-style: none } .contents li { display: flex; gap: .6rem } .contents b { min-width: 2.6rem }
    a { color: inherit } .advice { max-width: 44rem; margin: .3rem 0 1rem } .more { opacity: .7 }
    .photos, .groups { display: flex; flex-wrap: wrap; gap: .8rem; align-items: flex-start }
    .group { display: flex; flex-wrap: wrap; gap: .6rem; padding: .6rem; border: 1px solid var(--faint); border-radius: .4rem }
    figure { margin: 0; font-size: .8rem; line-height: 1.3; max-width: 100%; min-width: 5.5rem }
    figcaption { overflow-wrap: anywhere; margin-top: .2rem; width: 0; min-width: 100% }
    .photo { position: relative; display: block; width: max-content; max-width: 100% }
    .photo img { display: block; height: 7rem; max-width: 100%; object-fit: cover; background: var(--faint) }
    .crop::after { content: ""; position: absolute; inset: 0; margin: auto; aspect-ratio: 1; box-sizing: border-box;
      border: 2px solid #fff; outline: 1px solid #000 }
    .wide::after { height: 100% } .tall::after { width: 100% }
    @media (max-width: 30rem) { th { white-space: normal; overflow-wrap: break-word; min-width: 4.5rem } .photo img { height: 5.5rem } }
    """
