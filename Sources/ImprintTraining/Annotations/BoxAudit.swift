internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

extension Audit {
    /// The objects of a label in annotated photos, excluding crowds.
    public struct LabelObjects: Sendable, Hashable, Codable {
        /// The label.
        public let label: String
        /// The number of objects.
        public let objects: Int
        /// The number of photos with at least one of the objects.
        public let photos: Int
        /// The smallest, the median and the largest size of the objects: the longer side, in pixels of the largest scaled copy of a photo
        /// that a detector scans.
        public let sizes: [Double]
        /// The smallest, the median and the largest width-to-height ratio of the objects.
        public let aspectRatios: [Double]
    }

    /// The minimum length of the longer side of an object, in pixels of the largest scaled copy of a photo that a detector scans.
    ///
    /// Training uses objects whose longer side is at least 25 % of the side of a patch. The detector finds them reliably from 30 %.
    public static let minimumObjectSide = 3 * DetectorHead.patchSide / 10
    /// The maximum ratio of the sides of an object.
    public static let maximumAspectRatio = 8
    /// The minimum number of objects of a label.
    public static let minimumObjects = 20
}

/// The findings about the boxes of annotated photos.
struct BoxAudit {
    let objects: [Audit.LabelObjects]
    let findings: [Audit.Finding]

    init(_ annotations: BoxAnnotations) {
        var members: [String: [(photo: Int, size: Double, aspectRatio: Double)]] = [:]
        var findings = annotations.problems.map { problem in
            Audit.Finding(kind: problem.kind.finding, files: [problem.photo], reason: problem.details)
        }
        findings += annotations.skipped.map { image in
            FileStatus(image.url) == nil
                ? Audit.Finding(kind: .missing, files: [image.url], reason: "") : Audit.Finding(unreadable: image)
        }
        for (index, photo) in annotations.photos.enumerated() {
            if let part = annotations.sharedPhotos[photo.url] {
                let first = annotations.statedParts[photo.url] ?? .training
                let reason = "in the \(first) and the \(part) set"
                findings.append(Audit.Finding(kind: .sharedPhotos, files: [photo.url], reason: reason))
            }
            if photo.objects.isEmpty {
                findings.append(Audit.Finding(kind: .withoutBoxes, files: [photo.url], reason: ""))
            }
            for object in photo.objects where !object.isCrowd {
                let box = PixelBox(object.box, in: photo)
                let size = max(box.width, box.height) * photo.largestScale
                let ratio = box.width / box.height
                members[object.label, default: []].append((index, size, ratio))
                if size < Double(Audit.minimumObjectSide) {
                    findings.append(
                        Self.finding(.smallBoxes, photo, [object], String(format: ", %.1f pixels when scanned", size)))
                }
                if max(ratio, 1 / ratio) > Double(Audit.maximumAspectRatio) {
                    findings.append(
                        Self.finding(
                            .elongatedBoxes, photo, [object], String(format: ", %.1f : 1", max(ratio, 1 / ratio))))
                }
            }
            findings += Self.overlaps(photo)
        }
        objects = annotations.labels.map { label in
            let members = members[label] ?? []
            return Audit.LabelObjects(
                label: label, objects: members.count, photos: Set(members.map(\.photo)).count,
                sizes: Self.range(members.map(\.size)), aspectRatios: Self.range(members.map(\.aspectRatio)))
        }
        findings += objects.filter { $0.objects < Audit.minimumObjects }.map { Self.finding(.fewObjects, $0) }
        // Training ignores labels without objects.
        findings += objects.filter { $0.objects > 0 && ImageFolder.reservedLabel(in: [$0.label]) != nil }
            .map { Self.finding(.reservedLabels, $0) }
        self.findings = findings
    }

    /// Returns a finding about the objects of a label.
    private static func finding(_ kind: Audit.Finding.Kind, _ label: Audit.LabelObjects) -> Audit.Finding {
        Audit.Finding(
            kind: kind, files: [],
            reason: "\(label.label): \(counted(label.objects, "object")) in \(counted(label.photos, "photo"))")
    }

    /// Returns a finding about boxes of one photo.
    private static func finding(
        _ kind: Audit.Finding.Kind, _ photo: AnnotatedPhoto, _ objects: [AnnotatedPhoto.Object], _ details: String
    ) -> Audit.Finding {
        let first = PixelBox(objects[0].box, in: photo)
        let labels = objects.map { abbreviated($0.label) }
        let names = labels.count == 2 && labels[0] == labels[1] ? labels[0] : labels.joined(separator: " and ")
        let position = String(
            format: ", x %.0f, y %.0f, %.0f x %.0f pixels", first.x, first.y, first.width, first.height)
        return Audit.Finding(
            kind: kind, files: [photo.url], reason: names + position + details, boxes: objects.map(\.box))
    }

    /// The IoU above which two boxes are of the same object.
    private static let duplicateOverlap = 0.9
    /// The maximum number of boxes that each box is compared with, so that files with millions of boxes do not take hours.
    private static let comparisonLimit = 200

    /// Returns the findings about boxes that are almost equal: each box with the first box that it overlaps.
    private static func overlaps(_ photo: AnnotatedPhoto) -> [Audit.Finding] {
        let boxes = photo.objects.filter { !$0.isCrowd }.map { ($0, PixelBox($0.box, in: photo)) }
            .sorted { $0.1.x < $1.1.x }
        var findings: [Audit.Finding] = []
        for (index, (object, box)) in boxes.enumerated() {
            // Boxes that begin further to the right overlap by less than the threshold.
            let others = boxes[(index + 1)...].prefix(comparisonLimit).prefix {
                $0.1.x - box.x <= (1 - duplicateOverlap) * box.width
            }
            func isEqual(_ other: PixelBox) -> Bool { box.iou(with: other, isCrowd: false) > duplicateOverlap }
            if let (other, _) = others.first(where: { $0.0.label == object.label && isEqual($0.1) }) {
                findings.append(finding(.duplicateBoxes, photo, [object, other], ""))
            }
            if let (other, _) = others.first(where: { $0.0.label != object.label && isEqual($0.1) }) {
                findings.append(finding(.conflictingBoxes, photo, [object, other], ""))
            }
        }
        return findings
    }

    /// Returns the minimum, the median and the maximum; empty without values.
    private static func range(_ values: [Double]) -> [Double] {
        let sorted = values.sorted()
        guard let first = sorted.first, let last = sorted.last else { return [] }
        return [first, (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2, last]
    }
}

extension AnnotatedPhoto {
    /// The scale of the largest copy of the photo that a detector scans; the copy has the area of the highest pyramid level.
    fileprivate var largestScale: Double {
        let level = DetectorHead.logoDetector(logos: []).levels.max() ?? 0
        return Double(level) / (Double(width) * Double(height)).squareRoot()
    }
}

extension BoxProblem.Kind {
    /// The kind of the finding in an audit.
    fileprivate var finding: Audit.Finding.Kind {
        switch self {
        case .clipped: .clippedBoxes
        case .notFinite: .nonFiniteBoxes
        case .empty: .emptyBoxes
        case .swapped: .swappedBoxes
        case .outside: .outsideBoxes
        case .ambiguousOrientation: .ambiguousOrientation
        case .otherSize: .otherSize
        }
    }
}
