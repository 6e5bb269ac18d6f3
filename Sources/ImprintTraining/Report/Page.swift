package import ImprintModel

/// A page of HTML that needs nothing else: no scripts, no fonts, no network.
///
/// Light and dark follow the reader's system, and paper is always light.
package struct Page {
    /// The whole page.
    package let html: String

    /// Makes a page; what comes from outside is escaped in `body` already.
    /// - Parameters:
    ///   - title: What the window says, and the headline if there is no `header`.
    ///   - kind: The kind of file that the page becomes; nil for a page that is only served.
    ///   - header: What stands in place of the headline.
    ///   - body: The rest.
    package init(title: String, kind: OutputFile.Page? = nil, header: String? = nil, body: String) {
        html = """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            \(kind.map(OutputFile.generatorElement) ?? "")
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>\(escaped(title))</title>
            <style>\(Self.style)</style>
            </head>
            <body>
            \(header ?? "<h1>\(escaped(title))</h1>")
            <main>
            \(body)
            </main>
            </body>
            </html>

            """
    }

    /// A table of two columns under a headline; nothing if it has no rows.
    static func table(_ title: String, _ rows: [(String, String)]) -> String {
        rows.isEmpty ? "" : "<h2>\(escaped(title))</h2>\n\(table(rows))"
    }

    /// A table of two columns.
    package static func table(_ rows: [(String, String)]) -> String {
        let cells = rows.map { "<tr><th scope=\"row\">\(escaped($0.0))</th><td>\(escaped($0.1))</td></tr>" }
        return "<table>\n\(cells.joined(separator: "\n"))\n</table>"
    }

    /// A part of the page under a headline that a link may lead to; nothing if it has no content.
    package static func section(_ title: String, id: String, _ content: String) -> String {
        guard !content.isEmpty else { return "" }
        return """
            <section id="\(id)" aria-labelledby="\(id)-title">
            <h2 id="\(id)-title">\(escaped(title))</h2>
            \(content)
            </section>
            """
    }

    /// A box in which what is too wide for the page scrolls by itself, by keyboard too.
    package static func scrollBox(_ name: String, _ content: String) -> String {
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"\(escaped(name))\">\n\(content)\n</div>"
    }
}

/// A text as HTML shows it.
package func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
        .replacing("\"", with: "&quot;")
}

/// A name from outside as HTML shows it; the direction of its script leaves what stands beside it alone.
func isolated(_ name: String) -> String { "<bdi>\(escaped(name))</bdi>" }
