internal import ImprintCore

extension Checkpoint.Images {
    /// The difference between the images of a checkpoint and those of the run that resumes from it.
    package struct Change: CustomStringConvertible, Hashable, Sendable {
        /// The number of images that the checkpoint does not have.
        package var new = 0
        /// The number of images of the checkpoint that are missing.
        package var missing = 0
        /// The number of images with another size or other labels; 0 for older checkpoints, which do not have the sizes.
        package var edited = 0
        /// The names of the images of the checkpoint that cannot be read.
        package var unreadable: [String] = []

        package init(new: Int = 0, missing: Int = 0, edited: Int = 0, unreadable: [String] = []) {
            (self.new, self.missing, self.edited, self.unreadable) = (new, missing, edited, unreadable)
        }

        /// The numbers in words, such as "3 new, 2 missing" or "1 unreadable: cats/7.jpg".
        package var description: String {
            let counts = [(new, "new"), (missing, "missing"), (edited, "edited")].filter { $0.0 > 0 }
            var parts = counts.map { "\($0.0) \($0.1)" }
            if !unreadable.isEmpty {
                let limit = 3
                let rest = unreadable.count > limit ? ["and \(unreadable.count - limit) more"] : []
                let names = (unreadable.prefix(limit) + rest).joined(separator: ", ")
                parts.append("\(unreadable.count) unreadable: \(names)")
            }
            return parts.isEmpty ? "edited photos or unreadable files" : parts.joined(separator: ", ")
        }
    }

    /// Whether both runs have the same images, with the same sizes and labels, in the same sets.
    package func hasSameImages(as other: Self) -> Bool {
        // The digests contain the sizes and labels.
        digests == other.digests && training == other.training && validation == other.validation
    }

    /// Returns the difference between these images and the images of a run that resumes.
    ///
    /// Images that only move between the training set and the validation set of a split are unchanged.
    package func change(to other: Self) -> Change {
        let (before, after) = (identitiesByPath, other.identitiesByPath)
        var change = Change()
        for (path, identity) in after {
            if let earlier = before[path] {
                if !earlier.isEmpty, !identity.isEmpty, earlier != identity { change.edited += 1 }
            } else {
                change.new += 1
            }
        }
        let unreadable = other.unreadableNames
        for key in before.keys where after[key] == nil {
            if let name = unreadable[key] { change.unreadable.append(name) } else { change.missing += 1 }
        }
        // A dictionary has no order.
        change.unreadable.sort(by: precedes)
        return change
    }

    /// The images of the first source: all images, or only the training set if the validation set has a source of its own.
    package var ofFirstSource: Self {
        guard digests.count > 1 else { return self }
        return Self(
            digests: [digests[0]], training: training, validation: [], leakage: nil,
            identities: identities.map { String($0.prefix(Self.identityLength * training.count)) })
    }

    /// The number of hexadecimal digits of an identity.
    static let identityLength = 16

    /// The identity of each image by its path; empty in an older checkpoint.
    ///
    /// These are bytes, because paths that differ only in their Unicode normalization are equal strings.
    private var identitiesByPath: [[UInt8]: ArraySlice<UInt8>] {
        let paths = keys(training, validation)
        let digits = Array((identities ?? "").utf8)
        let length = digits.count == Self.identityLength * paths.count ? Self.identityLength : 0
        let known = paths.indices.map { digits[(length * $0)..<(length * ($0 + 1))] }
        return Dictionary(zip(paths, known), uniquingKeysWith: { first, _ in first })
    }

    /// The names of the unreadable images by the keys of `identitiesByPath`.
    private var unreadableNames: [[UInt8]: String] {
        let paths = keys(unreadableTraining.map(\.path), unreadableValidation.map(\.path))
        return Dictionary(
            zip(paths, (unreadableTraining + unreadableValidation).map(\.name)),
            uniquingKeysWith: { first, _ in first })
    }

    /// Returns the bytes of paths, which are unique also if two sources have the same paths.
    private func keys(_ training: [String], _ validation: [String]) -> [[UInt8]] {
        let prefix: [UInt8] = digests.count > 1 ? [0] : []
        return training.map { Array($0.utf8) } + validation.map { prefix + Array($0.utf8) }
    }
}
