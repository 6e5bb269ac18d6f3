internal import Foundation
internal import ImprintModel

/// The section about the data set: the number of photos by label, and the findings of an audit.
enum DataSection {
    /// The maximum number of files that are named for each kind of finding.
    private static let nameLimit = 3

    /// Returns the section; empty if the numbers of photos are unknown.
    /// - Parameter logos: The labels of logos that the model was trained on from artwork.
    static func html(_ record: TrainingRecord?, labels: [String], logos: [String], audit: Audit?) -> String {
        let counts = counts(record, labels)
        let known = counts.contains { $0.images > 0 } ? counts : audit?.labels ?? []
        guard !known.isEmpty else { return "" }
        let remark = logos.isEmpty ? balance(known) : learnedFromArtwork(known.filter { logos.contains($0.label) })
        return [bars(known), remark, audit.map(findings) ?? ""].filter { !$0.isEmpty }.joined(separator: "\n")
    }

    /// Returns the number of photos of each label according to a training record.
    ///
    /// The record may be invalid, so the counts are clamped to prevent overflow of their sum.
    static func counts(_ record: TrainingRecord?, _ labels: [String]) -> [Audit.LabelCount] {
        func count(_ counts: [String: Int]?, _ label: String) -> Int { min(max(counts?[label] ?? 0, 0), 1 << 40) }
        return labels.map {
            Audit.LabelCount(
                label: $0, images: count(record?.trainingImages, $0),
                validationImages: count(record?.validationImages, $0), testImages: nil)
        }
    }

    /// Returns a bar chart of the number of photos of each label.
    static func bars(_ labels: [Audit.LabelCount]) -> String {
        let maximum = Double(max(labels.map { $0.images + $0.validationImages + ($0.testImages ?? 0) }.max() ?? 1, 1))
        let validates = labels.contains { $0.validationImages > 0 }
        let hasTestSet = labels.contains { $0.testImages != nil }
        let bars = labels.map { label in
            func part(_ count: Int) -> String {
                count == 0 ? "" : "<i style=\"width: \(String(format: "%.2f", 100 * Double(count) / maximum))%\"></i>"
            }
            var counts = [label.images]
            if validates { counts.append(label.validationImages) }
            if hasTestSet { counts.append(label.testImages ?? 0) }
            return "<span>\(isolated(label.label))</span><div class=\"bar\">\(counts.map(part).joined())</div>"
                + "<span>\(counts.map(grouped).joined(separator: " + "))</span>"
        }
        let sets = ["Training photos"] + (validates ? ["validation photos"] : []) + (hasTestSet ? ["test photos"] : [])
        let note = sets.count > 1 ? "\n<p class=\"more\">\(sets.joined(separator: " + ")).</p>" : ""
        return "<div class=\"bars\">\n\(bars.joined(separator: "\n"))\n</div>\(note)"
    }

    private static func balance(_ labels: [Audit.LabelCount]) -> String {
        guard labels.count > 1, let largest = labels.max(by: { $0.images < $1.images }),
            let smallest = labels.min(by: { $0.images < $1.images })
        else { return "" }
        guard smallest.images > 0 else {
            return "<p>\(isolated(smallest.label)) has no training photos, so the model cannot recognize it.</p>"
        }
        let ratio = Double(largest.images) / Double(smallest.images)
        guard ratio >= 1.5 else { return "<p>The labels are balanced.</p>" }
        return
            "<p>\(isolated(largest.label)) has <strong>\(compact(ratio, digits: 2)) times</strong> as many training photos as "
            + "\(isolated(smallest.label)). Models favour frequent labels; compare the recall of the two.</p>"
    }

    private static func learnedFromArtwork(_ logos: [Audit.LabelCount]) -> String {
        let unseen = logos.filter { $0.images == 0 }.map { isolated($0.label) }
        guard !unseen.isEmpty else { return "" }
        return "<p>There are no training photos of \(unseen.joined(separator: ", ")); the model learned "
            + "\(unseen.count == 1 ? "this logo" : "these logos") from artwork.</p>"
    }

    private static func findings(_ audit: Audit) -> String {
        var lines: [String] = []
        if audit.groups > 0 {
            lines.append(
                "<p>The audit found \(groupedCount(audit.groups, "group")) of copies, near-duplicates and bursts, with "
                    + "\(groupedCount(audit.imagesInGroups, "photo")). Training keeps each group on one side of the dataset split.</p>"
            )
        }
        let kinds = Audit.Finding.Kind.allCases.map { kind in (kind, audit.findings.filter { $0.kind == kind }) }
            .filter { !$0.1.isEmpty }
        guard !kinds.isEmpty else { return (lines + ["<p>The audit found no problems.</p>"]).joined() }
        let rows = kinds.map { kind, findings in
            let files = findings.flatMap(\.names)
            let names = files.prefix(nameLimit).map(isolated).joined(separator: ", ")
            let more = files.count - nameLimit
            return "<tr><th scope=\"row\">\(escaped(kind.title))</th><td>\(grouped(findings.count))</td>"
                + "<td class=\"names\">\(names)\(more > 0 ? " and \(grouped(more)) more" : "")</td></tr>"
        }
        return lines.joined() + """
            <table class="findings">
            <thead><tr><th scope="col">finding</th><th scope="col">count</th><th scope="col">files</th></tr></thead>
            <tbody>
            \(rows.joined(separator: "\n"))
            </tbody>
            </table>
            """
    }
}
