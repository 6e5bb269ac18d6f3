import Foundation
import TestSupport
import Testing

/// The Markdown pages of the repository.
@Suite struct DocumentationLinkTests {
    /// The pages that a script generates.
    private static let generated: Set = ["docs/reference/cli.md"]
    /// The maximum number of lines of a page that a person writes, except the changelog.
    private static let maximumLines = 250

    @Test("Links and anchors of all pages resolve, and pictures have alternative text")
    func links() throws {
        let pages = try Self.pages()
        for (path, page) in pages {
            for link in page.links where link.destination.firstMatch(of: /^[a-z]+:/) == nil {
                if link.isPicture {
                    #expect(!link.text.isEmpty, "\(path): the picture \(link.destination) has no alternative text")
                }
                let target = Self.target(of: link, in: path)
                guard Self.exists(target) else {
                    Issue.record("\(path): \(link.destination) does not exist")
                    continue
                }
                guard let fragment = Self.fragment(of: link), target.hasSuffix(".md") else { continue }
                let anchors = try pages[target]?.anchors ?? Self.page(target).anchors
                #expect(anchors.contains(fragment), "\(path): \(link.destination) has no such heading")
            }
        }
    }

    @Test("Every page of docs is reachable from docs/index.md")
    func reachability() throws {
        let pages = try Self.pages().filter { path, _ in
            // These folders have notes for developers.
            path.hasPrefix("docs/") && !path.hasPrefix("docs/examples/") && !path.hasPrefix("docs/pictures/")
        }
        var (reached, open) = (Set<String>(), ["docs/index.md"])
        while let path = open.popLast() {
            guard let page = pages[path], reached.insert(path).inserted else { continue }
            open += page.links.map { Self.target(of: $0, in: path) }
        }
        #expect(reached.contains("docs/index.md"), "there is no docs/index.md")
        let others = Set(pages.keys).subtracting(reached).sorted()
        #expect(others.isEmpty, "no path of links leads from docs/index.md to \(others)")
    }

    @Test("A page that a person writes has at most 250 lines")
    func lengths() throws {
        for (path, page) in try Self.pages() where !Self.generated.contains(path) && path != "CHANGELOG.md" {
            #expect(page.lineCount <= Self.maximumLines, "\(path) has \(page.lineCount) lines; split it")
        }
    }

    @Test("Pages and pictures that code and scripts mention exist")
    func mentions() throws {
        let types: Set = ["swift", "c", "h", "py", "js", "html", "css", "md", "txt"]
        let folders = ["Sources", "Tests", "Benchmarks", "Plugins", "Fuzzing", "lint"]
        let files = try folders.flatMap { try packageFiles(in: $0) }
            .filter { types.contains(URL(filePath: $0).pathExtension) }
        for file in ["run"] + files {
            let url = packageFolder.appending(path: file)
            guard let text = try? String(contentsOf: url, encoding: .utf8), text.contains("docs/") else { continue }
            for mention in text.matches(of: /(^|[^\w.\-])(docs\/[\w.\/\-]+\.(?:md|png|svg))/).map({ String($0.2) }) {
                #expect(Self.exists(mention), "\(file) mentions \(mention), which does not exist")
            }
        }
    }

    @Test("Anchors, links and code of a page are read as GitHub does")
    func markdown() {
        let page = MarkdownPage(
            """
            # The file (`*.imprint`), formats 1 to 3
            ## imprint.training
            ## Learning rate, EMA
            ## [A link](x.md) & more
            ## imprint.training

            A [link
            over lines](a.md#b), [`code[0]`](c.md), ![a picture](d.png), `[no](link.md)` and <img src="e.png" alt="">.

                # no heading, [no](link.md)

            ```
            [no](link.md)
            ```
            """)
        #expect(
            page.anchors == [
                "the-file-imprint-formats-1-to-3", "imprinttraining", "learning-rate-ema", "a-link--more",
                "imprinttraining-1",
            ])
        #expect(page.links.map(\.destination) == ["x.md", "a.md#b", "c.md", "d.png", "e.png"])
        #expect(page.links.map(\.isPicture) == [false, false, false, true, true])
        #expect(page.links.last?.text.isEmpty == true && page.lineCount == 14)
    }

    // MARK: - Files

    /// Returns the pages by path, relative to the package.
    private static func pages() throws -> [String: MarkdownPage] {
        let documents = try packageFiles(in: "docs", extension: "md").filter { !$0.hasPrefix("docs/api/") }
        let readMes = try ["Sources", "Benchmarks"].flatMap { folder in
            try FileManager.default.contentsOfDirectory(atPath: packageFolder.appending(path: folder).path)
                .map { "\(folder)/\($0)/README.md" }.filter(exists)
        }
        let paths = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "datasets/README.md"] + documents + readMes
        return Dictionary(uniqueKeysWithValues: try paths.sorted().map { ($0, try page($0)) })
    }

    private static func page(_ path: String) throws -> MarkdownPage {
        MarkdownPage(try String(contentsOf: packageFolder.appending(path: path), encoding: .utf8))
    }

    private static func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: packageFolder.appending(path: path).path)
    }

    /// Returns the file or folder that a link of a page names, relative to the package.
    private static func target(of link: MarkdownPage.Link, in path: String) -> String {
        let file = link.destination.prefix { $0 != "#" }
        guard !file.isEmpty else { return path }
        let name = String(file).removingPercentEncoding ?? String(file)
        var components = path.split(separator: "/").dropLast().map(String.init)
        for component in name.split(separator: "/") {
            switch component {
            case ".": break
            case ".." where components.last.map { $0 != ".." } ?? false: components.removeLast()
            default: components.append(String(component))
            }
        }
        return components.joined(separator: "/")
    }

    /// Returns the anchor of a link, the part behind "#"; nil without one.
    private static func fragment(of link: MarkdownPage.Link) -> String? {
        guard let start = link.destination.firstIndex(of: "#") else { return nil }
        let fragment = String(link.destination[link.destination.index(after: start)...])
        return fragment.isEmpty ? nil : fragment.removingPercentEncoding ?? fragment
    }
}
