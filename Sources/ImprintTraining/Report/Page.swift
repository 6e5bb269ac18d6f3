internal import ImprintCore
package import ImprintModel

/// A self-contained HTML page, without scripts, external fonts or other network requests.
///
/// Light or dark mode follows the reader's system; the page prints in light mode.
package struct Page {
    /// The HTML of the page.
    package let html: String

    /// Creates a page.
    /// - Parameters:
    ///   - title: The title of the window, and the headline if there is no `header`.
    ///   - kind: The kind of file that the page is written to; nil for a page that is only served.
    ///   - run: The state of the run that the page describes (`TrainingRecord.runState`); nil without a run.
    ///   - header: The HTML that replaces the headline.
    ///   - body: The HTML of the content, with untrusted text already escaped.
    package init(
        title: String, kind: OutputFile.Page? = nil, run: String? = nil, header: String? = nil, body: String
    ) {
        let elements = [kind.map(OutputFile.generatorElement), run.map(OutputFile.runElement)].compactMap { $0 }
        html = """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            \(elements.joined(separator: "\n"))
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

    /// Returns a table of two columns with a headline; empty if it has no rows.
    static func table(_ title: String, _ rows: [(String, String)]) -> String {
        rows.isEmpty ? "" : "<h2>\(escaped(title))</h2>\n\(table(rows))"
    }

    /// Returns a table of two columns.
    package static func table(_ rows: [(String, String)]) -> String {
        let cells = rows.map { "<tr><th scope=\"row\">\(escaped($0.0))</th><td>\(escaped($0.1))</td></tr>" }
        return "<table>\n\(cells.joined(separator: "\n"))\n</table>"
    }

    /// Returns a section of the page with a headline and an anchor for links; empty if it has no content.
    package static func section(_ title: String, id: String, _ content: String) -> String {
        guard !content.isEmpty else { return "" }
        return """
            <section id="\(id)" aria-labelledby="\(id)-title">
            <h2 id="\(id)-title">\(escaped(title))</h2>
            \(content)
            </section>
            """
    }

    /// Returns a box that scrolls horizontally, also by keyboard, if its content is wider than the page.
    package static func scrollBox(_ name: String, _ content: String) -> String {
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"\(escaped(name))\">\n\(content)\n</div>"
    }
}

/// Escapes a text for HTML.
package func escaped(_ text: String) -> String {
    text.replacingScalars { scalar in
        switch scalar {
        case "&": "&amp;"
        case "<": "&lt;"
        case ">": "&gt;"
        case "\"": "&quot;"
        default: nil
        }
    }
}

/// Escapes an untrusted name for HTML, and isolates its text direction from the surrounding text.
func isolated(_ name: String) -> String { "<bdi>\(escaped(name))</bdi>" }
