public import Foundation

extension Audit {
    /// A finding about one photo, or about a group of related photos.
    public struct Finding: Sendable, Hashable {
        /// The kind of a finding.
        public enum Kind: String, Sendable, CaseIterable, Codable {
            /// Near-duplicates with different labels: one of the labels may be wrong.
            case acrossLabels
            /// Training and validation photos of one group, which make the validation accuracy too high.
            case acrossSplits
            /// A file that cannot be read as an image.
            case unreadable
            /// A truncated or damaged image.
            case truncated
            /// An animation, of which only the first frame is used.
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
        }

        /// The kind of the finding.
        public let kind: Kind
        /// The files, in the order of the folders; across splits, validation photos come first.
        public let files: [URL]
        /// The details; empty if the kind needs none.
        public let reason: String

        /// The file names with as many parent folders as distinguish them, at least the label's ("cat/IMG_1.jpg").
        public var names: [String] {
            func names(_ parts: Int) -> [String] {
                files.map { $0.pathComponents.suffix(parts).joined(separator: "/") }
            }
            let minimumParts = kind == .acrossSplits ? 3 : 2
            return (minimumParts...5).lazy.map(names).first { Set($0).count == files.count } ?? names(5)
        }
    }
}

extension Audit.Finding.Kind {
    /// The headline of the findings.
    public var title: String {
        switch self {
        case .acrossLabels: "Near-duplicates with different labels"
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
        }
    }

    /// The consequence of the findings, and how to fix them.
    public var advice: String {
        switch self {
        case .acrossLabels:
            "Near-duplicates in the folders of different labels. Check that each label is right; a small subject may be the only "
                + "difference."
        case .acrossSplits:
            "Validation photos that are near-duplicates of training photos, or of the same burst. They make the validation "
                + "accuracy too high; move each group into one of the two folders."
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
                + "subject is outside, train with the scaling scale-fit, or crop the photos."
        }
    }
}
