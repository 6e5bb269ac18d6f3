package import Foundation
package import ImprintCore
internal import ImprintImages
internal import ImprintModel

/// An HTML report of an audit, with the photos of its findings.
///
/// The page is one self-contained file with thumbnails of the photos. Long lists are truncated.
package struct AuditReport: Sendable {
    /// The HTML of the page.
    package let html: String

    /// The maximum number of findings of a kind.
    private static let findingLimit = 24
    /// The maximum number of photos of a finding.
    private static let photoLimit = 12

    /// Creates the page, and reads the photos that it shows.
    /// - Parameters:
    ///   - audit: The result of an audit.
    ///   - title: The headline, such as the name of the folder.
    ///   - threads: The number of threads.
    package init(_ audit: Audit, title: String, threads: Int = 1) {
        self.init(audit, title: title, workers: Workers(threads))
    }

    package init(_ audit: Audit, title: String, workers: Workers) {
        let kinds = Audit.Finding.Kind.allCases.filter { kind in audit.findings.contains { $0.kind == kind } }
        let sections = kinds.map { kind in (kind, audit.findings.filter { $0.kind == kind }) }
        let shown = sections.flatMap { $0.1.prefix(Self.findingLimit) }.filter(\.hasPhotos)
        let files = Set(shown.flatMap { $0.files.prefix(Self.photoLimit) }).sorted { $0.path < $1.path }
        // Unreadable files have no thumbnail.
        let thumbnails = workers.parallelMap(files.count) { try? Thumbnail(of: files[$0]) }
        let byFile = Dictionary(uniqueKeysWithValues: zip(files, thumbnails)).compactMapValues { $0 }
        html =
            Page(
                title: title, kind: .auditReport,
                body: """
                    <p class="figure">\(audit.trainingImages)<span> \(Self.photos(audit))</span></p>
                    \(Self.contents(sections))
                    <h2>Photos by label</h2>
                    \(DataSection.bars(audit.labels))
                    \(Page.table("Groups", Self.groups(audit)))
                    \(Page.table("Files", Self.files(audit)))
                    \(sections.map { Self.section($0.0, $0.1, byFile) }.joined(separator: "\n"))
                    """
            ).html
    }

    /// Writes the page to a file.
    /// - Throws: `FileError` if it cannot be written.
    package func write(to url: URL) throws { try AtomicFile.write(Array(html.utf8), to: url) }

    /// Returns the text after the number of training photos.
    private static func photos(_ audit: Audit) -> String {
        let labels = counted(audit.labels.count, "label")
        let noun = audit.trainingImages == 1 ? "photo" : "photos"
        switch (audit.validationImages, audit.testImages) {
        case (0, 0): return "\(noun) of \(labels)"
        case (let validation, 0): return "\(noun) for training and \(validation) for validation, of \(labels)"
        case (0, let test): return "\(noun) for training and \(test) for testing, of \(labels)"
        case (let validation, let test):
            return "\(noun) for training, \(validation) for validation and \(test) for testing, of \(labels)"
        }
    }

    private static func contents(_ sections: [(Audit.Finding.Kind, [Audit.Finding])]) -> String {
        guard !sections.isEmpty else { return "<p>The audit found no problems.</p>" }
        let lines = sections.map { kind, findings in
            "<li><b>\(findings.count)</b> <a href=\"#\(kind.rawValue)\">\(escaped(kind.title))</a></li>"
        }
        return "<ul class=\"contents\">\n\(lines.joined(separator: "\n"))\n</ul>"
    }

    private static func groups(_ audit: Audit) -> [(String, String)] {
        guard audit.groups > 0 else { return [] }
        var rows = [
            (
                "groups",
                "\(counted(audit.groups, "group")) of copies, near-duplicates and bursts, with \(audit.imagesInGroups) photos"
            )
        ]
        if let leakage = audit.randomSplit {
            rows.append(
                (
                    "random split",
                    "\(leakage.leaked) of \(leakage.images) validation photos would have a training photo in their group. Training "
                        + "keeps each group on one side of the dataset split."
                ))
        }
        return rows
    }

    private static func files(_ audit: Audit) -> [(String, String)] {
        func counts(_ counts: [(String, Int)]) -> String { counts.map { "\($0) \($1)" }.joined(separator: ", ") }
        var rows: [(String, String)] = []
        let profiles = audit.profilesByFrequency
        if !profiles.isEmpty { rows.append(("colour profiles", counts(profiles))) }
        if audit.rotatedImages > 0 {
            let rotated = audit.orientations.filter { $0.key != .up }.sorted { $0.key.rawValue < $1.key.rawValue }
            rows.append(
                (
                    "stored rotated",
                    "\(audit.rotatedImages), rotated upright when read (EXIF orientation "
                        + counts(rotated.map { ("\($0.key.rawValue):", $0.value) }) + ")"
                ))
        }
        if audit.ignored > 0 {
            rows.append(("ignored files", "\(audit.ignored) that are not images, or not in the folder of a label"))
        }
        return rows
    }

    private static func section(
        _ kind: Audit.Finding.Kind, _ findings: [Audit.Finding], _ thumbnails: [URL: Thumbnail]
    ) -> String {
        let shown = findings.prefix(findingLimit)
        let head =
            "<h2 id=\"\(kind.rawValue)\">\(escaped(kind.title))</h2>\n<p class=\"advice\">\(escaped(kind.advice))</p>\n"
        let content: String
        if !shown.contains(where: \.hasPhotos) {
            let rows = shown.map { "<tr><td>\(escaped($0.summary(fileLimit: photoLimit)))</td></tr>" }
            content = "<table>\n\(rows.joined(separator: "\n"))\n</table>"
        } else if kind.isAboutGroups {
            let groups = shown.map { finding in
                let more = finding.files.count - photoLimit
                let photos = zip(finding.files, finding.names).prefix(photoLimit).map {
                    figure($0, $1, kind, "", thumbnails)
                }
                return "<div class=\"group\">\(photos.joined(separator: "\n"))"
                    + (more > 0 ? "<p class=\"more\">and \(more) more</p>" : "") + "</div>"
            }
            content = "<div class=\"groups\">\n\(groups.joined(separator: "\n"))\n</div>"
        } else {
            let photos = shown.flatMap { finding in
                zip(finding.files, finding.names).map {
                    figure($0, $1, kind, finding.reason, thumbnails, boxes: finding.boxes)
                }
            }
            content = "<div class=\"photos\">\(photos.joined(separator: "\n"))</div>"
        }
        let more = findings.count - shown.count
        return head + content + (more > 0 ? "\n<p class=\"more\">and \(more) more</p>" : "")
    }

    private static func figure(
        _ file: URL, _ name: String, _ kind: Audit.Finding.Kind, _ reason: String, _ thumbnails: [URL: Thumbnail],
        boxes: [NormalizedRectangle] = []
    ) -> String {
        let folders = name.split(separator: "/").dropLast().joined(separator: "/")
        let image =
            thumbnails[file].map { photo($0, showsCrop: kind == .outsideCrop, name: file.lastPathComponent, boxes) }
            ?? ""
        let lines = [folders, file.lastPathComponent] + (reason.isEmpty ? [] : [reason])
        return "<figure>\(image)<figcaption>\(lines.map(isolated).joined(separator: "<br>"))</figcaption></figure>"
    }

    private static func photo(
        _ thumbnail: Thumbnail, showsCrop: Bool, name: String, _ boxes: [NormalizedRectangle]
    ) -> String {
        let style =
            showsCrop ? "photo crop \(thumbnail.isWide ? "wide" : "tall")" : boxes.isEmpty ? "photo" : "photo boxed"
        let size = (width: Float(thumbnail.width), height: Float(thumbnail.height))
        let overlay =
            boxes.isEmpty ? "" : BoxOverlay.svg(boxes.map { ($0.scaled(size.width, size.height), "mistake") }, size)
        return "<span class=\"\(style)\">\(thumbnail.html(alternative: name))\(overlay)</span>"
    }
}

extension Audit.Finding.Kind {
    fileprivate var isAboutGroups: Bool {
        switch self {
        case .acrossLabels, .acrossSplits, .copies, .nearDuplicates, .bursts: true
        default: false
        }
    }
}
