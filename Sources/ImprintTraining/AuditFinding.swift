public import Foundation

extension Audit {
    /// Something about one photo, or about several that belong together.
    public struct Finding: Sendable, Hashable {
        /// What it is about.
        public enum Kind: String, Sendable, CaseIterable, Codable {
            /// Photos of different labels that are near-duplicates: a label may be wrong.
            case acrossLabels
            /// Photos to train on and photos to validate on of one group, so that validation measures memory.
            case acrossSplits
            /// A file that cannot be read as an image.
            case unreadable
            /// An image that is cut short or damaged.
            case truncated
            /// An animation, of which the first picture counts.
            case animated
            /// A photo whose colour profile cannot be used.
            case unusableColors
            /// A photo whose short side is shorter than `Audit.leastSide`.
            case tiny
            /// Files with the same bytes.
            case copies
            /// Photos that differ by compression, size, turn, mirroring or a slight crop.
            case nearDuplicates
            /// Photos of one burst: neighbours by number or time that look alike.
            case bursts
            /// A photo whose subject a centre crop likely cuts off.
            case outsideCrop
        }

        /// What it is about.
        public let kind: Kind
        /// The files, in the order of the folders; across splits, those to validate on come first.
        public let files: [URL]
        /// What was found, in words; empty where the kind says it all.
        public let reason: String

        /// The names of the files with the folders that tell them apart, at least that of the label ("cat/IMG_1.jpg").
        public var names: [String] {
            func names(_ parts: Int) -> [String] {
                files.map { $0.pathComponents.suffix(parts).joined(separator: "/") }
            }
            let least = kind == .acrossSplits ? 3 : 2
            return (least...5).lazy.map(names).first { Set($0).count == files.count } ?? names(5)
        }
    }
}

extension Audit.Finding.Kind {
    /// A headline.
    public var title: String {
        switch self {
        case .acrossLabels: "The same under different labels"
        case .acrossSplits: "The same in training and validation"
        case .unreadable: "Cannot be read"
        case .truncated: "Cut short or damaged"
        case .animated: "Animations"
        case .unusableColors: "Colours that cannot be converted"
        case .tiny: "Very small"
        case .copies: "Copies"
        case .nearDuplicates: "Near-duplicates"
        case .bursts: "Bursts"
        case .outsideCrop: "Subject likely outside the centre crop"
        }
    }

    /// What it means and what to do about it.
    public var advice: String {
        switch self {
        case .acrossLabels:
            "Near-duplicates in the folders of different labels. Look whether each label is right; a small subject may make the "
                + "difference."
        case .acrossSplits:
            "Photos to validate on that show what photos to train on show. The accuracy on them says nothing of new photos; "
                + "move each group to one side."
        case .unreadable: "Skipped in training and evaluation. Remove, replace or convert them."
        case .truncated: "Skipped in training and evaluation. Copy them again from where they came from."
        case .animated: "Only the first picture is used."
        case .unusableColors: "The colours are taken for sRGB, and may be off. Save the photos again as sRGB."
        case .tiny: "Enlarged to the network's input, they are blurred."
        case .copies: "Files with the same bytes. Each one more counts its photo once more; keep one."
        case .nearDuplicates:
            "Photos that differ by compression, size, turn, mirroring or a slight crop. They add little; training keeps them on "
                + "one side of the split."
        case .bursts:
            "Neighbours by number or time that look alike. They are no error; training keeps each group on one side of the "
                + "split, so that validation does not measure memory."
        case .outsideCrop:
            "A hint, to be looked at: at least half of the contrast lies outside the square in the middle, twice as dense as "
                + "inside. If the subject is there, train with the scaling scale-fit, or crop the photos."
        }
    }
}
