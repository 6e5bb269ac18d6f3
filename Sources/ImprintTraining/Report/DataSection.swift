internal import Foundation
internal import ImprintModel

/// What the model was trained on: photos by label, and what an audit found.
enum DataSection {
    /// How many files of each kind of finding are named.
    private static let nameLimit = 3

    /// - Parameter marks: The labels that the model knows from artwork.
    static func html(_ record: TrainingRecord?, labels: [String], marks: [String], audit: Audit?) -> String {
        let counts = counts(record, labels)
        let known = counts.contains { $0.images > 0 } ? counts : audit?.labels ?? []
        guard !known.isEmpty else { return "" }
        let remark = marks.isEmpty ? balance(known) : knownFromArtwork(known.filter { marks.contains($0.label) })
        return [bars(known), remark, audit.map(findings) ?? ""].filter { !$0.isEmpty }.joined(separator: "\n")
    }

    /// How many photos of each label a record tells of.
    ///
    /// It may come from any file: the counts are kept within what can be added up.
    static func counts(_ record: TrainingRecord?, _ labels: [String]) -> [Audit.LabelCount] {
        func count(_ counts: [String: Int]?, _ label: String) -> Int { min(max(counts?[label] ?? 0, 0), 1 << 40) }
        return labels.map {
            Audit.LabelCount(
                label: $0, images: count(record?.trainingImages, $0),
                validationImages: count(record?.validationImages, $0))
        }
    }

    /// How many photos each label has, as bars.
    static func bars(_ labels: [Audit.LabelCount]) -> String {
        let most = Double(max(labels.map { $0.images + $0.validationImages }.max() ?? 1, 1))
        let validates = labels.contains { $0.validationImages > 0 }
        let bars = labels.map { label in
            func part(_ count: Int) -> String {
                count == 0 ? "" : "<i style=\"width: \(String(format: "%.2f", 100 * Double(count) / most))%\"></i>"
            }
            let count =
                validates ? "\(grouped(label.images)) + \(grouped(label.validationImages))" : grouped(label.images)
            return "<span>\(isolated(label.label))</span><div class=\"bar\">\(part(label.images))"
                + "\(part(label.validationImages))</div><span>\(count)</span>"
        }
        let note = validates ? "\n<p class=\"more\">Photos to train on + photos to validate on.</p>" : ""
        return "<div class=\"bars\">\n\(bars.joined(separator: "\n"))\n</div>\(note)"
    }

    private static func balance(_ labels: [Audit.LabelCount]) -> String {
        guard labels.count > 1, let most = labels.max(by: { $0.images < $1.images }),
            let least = labels.min(by: { $0.images < $1.images })
        else { return "" }
        guard least.images > 0 else {
            return "<p>\(isolated(least.label)) has no photo to train on; the model cannot know it.</p>"
        }
        let ratio = Double(most.images) / Double(least.images)
        guard ratio >= 1.5 else { return "<p>The labels are about equally frequent.</p>" }
        return
            "<p>\(isolated(most.label)) has <strong>\(compact(ratio, digits: 2)) times</strong> as many photos to train on as "
            + "\(isolated(least.label)). A model leans to what it saw more often; compare the recall of the two.</p>"
    }

    private static func knownFromArtwork(_ marks: [Audit.LabelCount]) -> String {
        let unseen = marks.filter { $0.images == 0 }.map { isolated($0.label) }
        guard !unseen.isEmpty else { return "" }
        return "<p>There is no photo of \(unseen.joined(separator: ", ")) to train on; the model knows "
            + "\(unseen.count == 1 ? "it from its" : "them from their") artwork.</p>"
    }

    private static func findings(_ audit: Audit) -> String {
        var lines: [String] = []
        if audit.groups > 0 {
            lines.append(
                "<p>\(counted(audit.imagesInGroups, "photo")) belong to \(counted(audit.groups, "group")) of copies, near-duplicates "
                    + "and bursts; training keeps each group on one side of the split.</p>")
        }
        let kinds = Audit.Finding.Kind.allCases.map { kind in (kind, audit.findings.filter { $0.kind == kind }) }
            .filter { !$0.1.isEmpty }
        guard !kinds.isEmpty else { return (lines + ["<p>The audit found nothing remarkable.</p>"]).joined() }
        let rows = kinds.map { kind, findings in
            let files = findings.flatMap(\.names)
            let names = files.prefix(nameLimit).map(isolated).joined(separator: ", ")
            let more = files.count - nameLimit
            return "<tr><th scope=\"row\">\(escaped(kind.title))</th><td>\(grouped(findings.count))</td>"
                + "<td class=\"names\">\(names)\(more > 0 ? " and \(grouped(more)) more" : "")</td></tr>"
        }
        return lines.joined() + """
            <table class="findings">
            <thead><tr><th scope="col">found</th><th scope="col">times</th><th scope="col">files</th></tr></thead>
            <tbody>
            \(rows.joined(separator: "\n"))
            </tbody>
            </table>
            """
    }
}
