import Foundation

/// The headings, links and pictures of a Markdown page, as GitHub shows it.
struct MarkdownPage {
    /// A link or a picture.
    struct Link {
        let destination: String
        /// The text of a link, or the alternative text of a picture.
        let text: String
        let isPicture: Bool
    }

    /// The anchors of the headings.
    let anchors: Set<String>
    /// The links and pictures, in the order of the page.
    let links: [Link]
    /// The number of lines.
    let lineCount: Int

    init(_ text: String) {
        lineCount = text.split(separator: "\n", omittingEmptySubsequences: false).count - (text.hasSuffix("\n") ? 1 : 0)
        let prose = Self.withoutCodeBlocks(text)
        anchors = Self.anchors(prose)
        links = Self.links(prose)
    }

    /// Returns the text without fenced and indented code blocks.
    private static func withoutCodeBlocks(_ text: String) -> String {
        var (lines, isFenced, followsBlank) = ([Substring](), false, true)
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.drop(while: { $0 == " " }).hasPrefix("```") {
                isFenced.toggle()
            } else if !isFenced && !(line.hasPrefix("    ") && followsBlank) {
                lines.append(line)
                followsBlank = line.allSatisfy(\.isWhitespace)
            }
        }
        return lines.joined(separator: "\n")
    }

    /// Returns the anchors of the headings by GitHub's rule: lower case, without punctuation, with hyphens instead of spaces; a repeated
    /// heading gets a number.
    private static func anchors(_ prose: String) -> Set<String> {
        var counts: [String: Int] = [:]
        return Set(
            prose.split(separator: "\n").compactMap { line in
                guard let heading = line.wholeMatch(of: /#{1,6} +(.*)/)?.1 else { return nil }
                let title = heading.replacing(/!?\[([^\]]*)\]\([^)]*\)/) { $0.1 }.lowercased()
                let anchor = String(title.filter { $0.isLetter || $0.isNumber || " -_".contains($0) })
                    .replacing(" ", with: "-")
                let count = counts[anchor, default: 0]
                counts[anchor] = count + 1
                return count == 0 ? anchor : "\(anchor)-\(count)"
            })
    }

    private static func links(_ prose: String) -> [Link] {
        // Brackets in code do not begin a link.
        let text = prose.replacing(/`[^`]+`/) { code in String(repeating: "x", count: code.0.count) }
        let links = text.matches(of: /(!?)\[([^\]]*)\]\(([^)\s]+)\)/).map {
            Link(destination: String($0.3), text: String($0.2), isPicture: !$0.1.isEmpty)
        }
        let pictures = text.matches(of: /<img\b[^>]*>/).map { picture in
            Link(
                destination: String(picture.0.firstMatch(of: /src="([^"]*)"/)?.1 ?? ""),
                text: String(picture.0.firstMatch(of: /alt="([^"]*)"/)?.1 ?? ""), isPicture: true)
        }
        let sources = text.matches(of: /(?:srcset|href)="([^"\s]*)/).map {
            Link(destination: String($0.1), text: "", isPicture: false)
        }
        return links + pictures + sources
    }
}
