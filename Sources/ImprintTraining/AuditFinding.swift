public import Foundation
internal import ImprintCore
public import ImprintImages

extension Audit {
    /// A finding about one photo, or about a group of related photos.
    public struct Finding: Sendable, Hashable {
        /// The kind of a finding.
        public enum Kind: String, Sendable, CaseIterable, Codable {
            /// Near-duplicates with different labels: one of the labels may be wrong.
            case acrossLabels
            /// Labels that differ only in case, spaces, hyphens, underscores or Unicode form, or in the order of two neighbouring letters: they are
            /// probably meant as one label. The finding has no files.
            case similarLabels
            /// A label of validation photos that no training photo has; training rejects them. The finding has no files.
            case untrainedLabels
            /// A label of objects that is reserved for photos without an object; training rejects it. The finding has no files.
            case reservedLabels
            /// A photo that is in more than one of the training, validation and test sets.
            case sharedPhotos
            /// Training and validation photos of one group, which make the validation accuracy too high.
            case acrossSplits
            /// A file that cannot be read as an image.
            case unreadable
            /// A truncated or damaged image.
            case truncated
            /// An animation; training and evaluation use only its first frame.
            case animated
            /// A photo with an unusable colour profile.
            case unusableColors
            /// A photo whose short side is shorter than `Audit.minimumSide`.
            case tiny
            /// Byte-identical files.
            case copies
            /// Photos that differ only by compression, size, rotation, mirroring or a slight crop.
            case nearDuplicates
            /// Similar photos with neighbouring file numbers or capture times.
            case bursts
            /// A photo whose subject is probably outside the centre crop.
            case outsideCrop
            /// An annotated photo that does not exist.
            case missing
            /// An annotated photo for which it is unclear whether the boxes refer to the upright or to the stored photo.
            case ambiguousOrientation
            /// An annotated photo whose size differs from the size in its annotation.
            case otherSize
            /// A box with a coordinate that is not a finite number.
            case nonFiniteBoxes
            /// A box without width or height.
            case emptyBoxes
            /// A box with a negative width or height.
            case swappedBoxes
            /// A box outside of its photo.
            case outsideBoxes
            /// A box that extends beyond its photo.
            case clippedBoxes
            /// Boxes of one label that are almost equal.
            case duplicateBoxes
            /// Boxes of different labels that are almost equal.
            case conflictingBoxes
            /// A box that is too small for a detector.
            case smallBoxes
            /// A box that is too wide or too high for a detector.
            case elongatedBoxes
            /// An annotated photo without boxes.
            case withoutBoxes
            /// A label with fewer than `Audit.minimumObjects` objects.
            case fewObjects
        }

        /// The kind of the finding.
        public let kind: Kind
        /// The files, in the order of the folders; across splits, validation photos come first.
        public let files: [URL]
        /// The details; empty if the kind needs none.
        public let reason: String
        /// The boxes that the finding is about, in the first of the files; empty for other findings, and for boxes that cannot be used.
        public let boxes: [NormalizedRectangle]
        /// The number of path components of the folder with all photos, if the audit compares several sets; otherwise nil.
        ///
        /// The path of a file below this folder includes the folder of its set.
        var commonFolderDepth: Int?

        init(kind: Kind, files: [URL], reason: String, boxes: [NormalizedRectangle] = []) {
            (self.kind, self.files, self.reason, self.boxes) = (kind, files, reason, boxes)
        }

        /// Creates the finding about a photo that cannot be read.
        init(unreadable image: SkippedImage) {
            let kind: Kind = if case .truncated = image.reason { .truncated } else { .unreadable }
            self.init(kind: kind, files: [image.url], reason: "\(image.reason)")
        }

        /// The file names with as many parent folders as distinguish them: at least the label's ("cat/IMG_1.jpg"), and those below the folder
        /// of all photos if the audit compares several sets ("test/cat/IMG_1.jpg").
        public var names: [String] {
            let components = files.map(\.displayComponents)
            func names(_ parts: Int) -> [String] {
                zip(files, components).map { file, components in
                    // Sets on different disks have only "/" in common, and whole paths would be long.
                    let depth = commonFolderDepth.flatMap { $0 > 1 ? $0 : nil } ?? components.count
                    let count = max(parts, components.count - depth)
                    // All folders of an absolute path are the whole path, which starts with "/".
                    return components.first == "/" && components.count <= count + 1
                        ? file.displayPath : components.suffix(count).joined(separator: "/")
                }
            }
            let minimumParts = commonFolderDepth == nil ? 2 : 3
            let maximumParts = max(minimumParts, components.map(\.count).max() ?? 0)
            return (minimumParts...maximumParts).lazy.map(names).first { Set($0).count == files.count }
                ?? names(maximumParts)
        }

        /// Whether the files can be shown as photos.
        package var hasPhotos: Bool { !files.isEmpty && ![.unreadable, .truncated, .missing].contains(kind) }

        /// Returns the files and the details in one line.
        /// - Parameter fileLimit: The maximum number of files to name.
        package func summary(fileLimit: Int) -> String {
            // The error of an unreadable file names it.
            if files.isEmpty || [.unreadable, .truncated].contains(kind) { return reason }
            let more = files.count > fileLimit ? " and \(files.count - fileLimit) more" : ""
            return names.prefix(fileLimit).joined(separator: ", ") + more + (reason.isEmpty ? "" : ": \(reason)")
        }
    }
}

extension Audit.Finding.Kind {
    /// The headline of the findings.
    public var title: String {
        switch self {
        case .acrossLabels: "Near-duplicates with different labels"
        case .similarLabels: "Labels with almost the same spelling"
        case .untrainedLabels: "Validation labels without training photos"
        case .reservedLabels: "Reserved labels"
        case .sharedPhotos: "Photos in more than one set"
        case .acrossSplits: "Leakage between training and validation"
        case .unreadable: "Unreadable files"
        case .truncated: "Truncated or damaged photos"
        case .animated: "Animations"
        case .unusableColors: "Unusable colour profiles"
        case .tiny: "Very small photos"
        case .copies: "Exact duplicates"
        case .nearDuplicates: "Near-duplicates"
        case .bursts: "Bursts"
        case .outsideCrop: "Subject probably outside the centre crop"
        case .missing: "Missing photos"
        case .ambiguousOrientation: "Boxes with an ambiguous orientation"
        case .otherSize: "Photos whose size differs from the stated size"
        case .nonFiniteBoxes: "Boxes that are not finite numbers"
        case .emptyBoxes: "Boxes without area"
        case .swappedBoxes: "Boxes of negative size"
        case .outsideBoxes: "Boxes outside of the photo"
        case .clippedBoxes: "Boxes that extend beyond the photo"
        case .duplicateBoxes: "Duplicate boxes"
        case .conflictingBoxes: "Objects with two labels"
        case .smallBoxes: "Objects that are too small to detect"
        case .elongatedBoxes: "Objects that are too long and narrow to detect"
        case .withoutBoxes: "Photos without boxes"
        case .fewObjects: "Labels with few objects"
        }
    }

    /// The consequence of the findings, and how to fix them.
    public var advice: String {
        switch self {
        case .acrossLabels: "Check that each label is right; a small subject may be the only difference."
        case .similarLabels:
            "These labels \(spellingSimilarity). Training learns them as different labels. If they mean the same, give "
                + "their photos one label."
        case .untrainedLabels:
            "Training rejects validation photos of labels that it does not learn. Add training photos of these labels, correct the "
                + "labels, or remove these validation photos."
        case .reservedLabels:
            "These labels are reserved for photos without an object, so training without other photos rejects objects with them. "
                + "Rename the labels, or remove their boxes if they mark no object."
        case .sharedPhotos:
            "The validation and test sets must not contain training photos, because a model recognizes the photos that it was trained "
                + "on. The test set must not contain validation photos, because training selects the model with them. Remove the photos "
                + "from one of the sets, or use other photos."
        case .acrossSplits:
            "Validation photos that are near-duplicates of training photos, or of the same burst. They make the validation "
                + "accuracy too high; move each group into one part of the split."
        case .unreadable: "Training and evaluation skip these files. Remove, replace or convert them."
        case .truncated: "Training and evaluation skip these photos. Copy them again from their source."
        case .animated: "Training and evaluation use only the first frame."
        case .unusableColors: "The colours are read as sRGB, and may be wrong. Save the photos again as sRGB."
        case .tiny: "These photos are enlarged to the input size of the network, which blurs them."
        case .copies: "Byte-identical files. Each copy raises the weight of its photo in training; keep only one."
        case .nearDuplicates:
            "Photos that differ only by compression, size, rotation, mirroring or a slight crop. They add little; training keeps "
                + "them on one side of the dataset split."
        case .bursts:
            "Similar photos with neighbouring file numbers or capture times. They need no fix: training keeps each burst on one "
                + "side of the dataset split."
        case .outsideCrop:
            "A guess: at least half of the contrast lies outside the central square, and it is twice as dense there. If the "
                + "subject is outside, crop the photos, or use a base model that was imported with the scaling scale-fit."
        case .missing:
            "Training and evaluation skip these photos and their boxes. Check the folder of the photos and the file names."
        case .ambiguousOrientation:
            "Nothing shows whether the boxes refer to the upright or to the stored picture; upright is assumed. If it is wrong, state "
                + "the size of the stored picture, or save the photos upright."
        case .otherSize:
            "The boxes are scaled from the stated to the actual size. Check that these are the annotated photos."
        case .nonFiniteBoxes: "Training and evaluation drop these boxes. Annotate the objects again."
        case .emptyBoxes: "Training and evaluation drop these boxes. Remove them, or annotate the objects again."
        case .swappedBoxes:
            "Training and evaluation swap the edges of these boxes. Check that only the corners were swapped, or export the annotations "
                + "again."
        case .outsideBoxes:
            "Training and evaluation drop these boxes. Check that they are in the right unit, and belong to this photo."
        case .clippedBoxes: "The boxes are clipped to the photo. Check that they are in the right unit."
        case .duplicateBoxes:
            "Boxes of one label with an IoU above .9, in which a detector can find only one object. Remove all but one of them."
        case .conflictingBoxes:
            "Boxes of different labels with an IoU above .9. Check the labels, and remove the wrong box."
        case .smallBoxes:
            "These objects have less than \(Audit.minimumObjectSide) pixels in the largest scaled copy of a photo that a detector "
                + "scans. Crop the photos, or take them from closer up."
        case .elongatedBoxes:
            "One side of these objects is more than \(Audit.maximumAspectRatio) times as long as the other, which is too narrow for a "
                + "detector. Annotate parts of the objects."
        case .withoutBoxes:
            "Photos without objects are useful as background. Check that the objects in these photos were not overlooked."
        case .fewObjects:
            "Labels with fewer than \(Audit.minimumObjects) objects. A detector learns them poorly; annotate more photos of them."
        }
    }
}
