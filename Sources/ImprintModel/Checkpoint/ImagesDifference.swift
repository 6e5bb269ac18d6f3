/// The images of the best parameters, as the difference to the images of the run, which are mostly the same.
///
/// The paths of a large data set fill most of the header of a checkpoint, so it cannot contain them twice.
struct ImagesDifference: Codable {
    /// Consecutive images in the list of the run's images followed by `paths`.
    private struct Segment: Codable {
        let first: Int
        var count: Int
    }

    private let digests: [String]
    private let leakage: [String: Int]?
    private let trainingCounts: [String: Int]?
    /// The images: first the training set, then the validation set.
    private let segments: [Segment]
    /// The number of training images.
    private let trainingImages: Int
    /// The paths of the images that the run does not have, or with another identity.
    private let paths: [String]
    /// The identities of the images with these paths; nil if the images have none.
    private let identities: String?

    /// Describes images.
    /// - Parameter base: The images of the run.
    init(_ images: Checkpoint.Images, from base: Checkpoint.Images) {
        let (all, known) = (images.training + images.validation, base.training + base.validation)
        let (allIdentities, knownIdentities) = (images.identityList, base.identityList)
        // As bytes, because paths that differ only in their Unicode normalization are equal strings.
        var indices = Dictionary(
            known.enumerated().map { (Array($1.utf8), $0) }, uniquingKeysWith: { first, _ in first })
        var segments: [Segment] = []
        var paths: [String] = []
        var identities: [UInt8] = []
        for (position, path) in all.enumerated() {
            // Each image of the run is used once, because two sources may have the same paths.
            var index = indices.removeValue(forKey: Array(path.utf8))
            if let found = index, let allIdentities, knownIdentities?[found] != allIdentities[position] { index = nil }
            if index == nil {
                paths.append(path)
                if let allIdentities { identities += allIdentities[position] }
            }
            let first = index ?? known.count + paths.count - 1
            if let last = segments.last, last.first + last.count == first {
                segments[segments.count - 1].count += 1
            } else {
                segments.append(Segment(first: first, count: 1))
            }
        }
        (digests, leakage, trainingCounts) = (images.digests, images.leakage, images.trainingCounts)
        (self.segments, self.paths, trainingImages) = (segments, paths, images.training.count)
        self.identities = allIdentities.map { _ in String(decoding: identities, as: UTF8.self) }
    }

    /// Returns the images; nil if the difference is invalid for the images of the run.
    /// - Parameter base: The images of the run.
    func images(from base: Checkpoint.Images) -> Checkpoint.Images? {
        let length = Checkpoint.Images.identityLength
        let known = base.training + base.validation + paths
        let zeros = [UInt8](repeating: UInt8(ascii: "0"), count: length * (known.count - paths.count))
        let knownIdentities = (base.identityList.map { Array($0.joined()) } ?? zeros) + Array((identities ?? "").utf8)
        guard identities == nil || knownIdentities.count == length * known.count else { return nil }
        var all: [String] = []
        var allIdentities: [UInt8] = []
        for segment in segments {
            // A damaged file must not make the list arbitrarily long.
            guard (0...known.count).contains(segment.first), segment.count >= 0,
                segment.count <= min(known.count - segment.first, known.count - all.count)
            else { return nil }
            let range = segment.first..<(segment.first + segment.count)
            all += known[range]
            guard identities != nil else { continue }
            allIdentities += knownIdentities[(length * range.lowerBound)..<(length * range.upperBound)]
        }
        guard (0...all.count).contains(trainingImages) else { return nil }
        var images = Checkpoint.Images(
            digests: digests, training: Array(all[..<trainingImages]), validation: Array(all[trainingImages...]),
            leakage: leakage, identities: identities.map { _ in String(decoding: allIdentities, as: UTF8.self) })
        images.trainingCounts = trainingCounts
        return images
    }
}

extension Checkpoint.Images {
    /// The identities of the training images and then of the validation images, as bytes; nil in an older checkpoint.
    fileprivate var identityList: [ArraySlice<UInt8>]? {
        guard let identities else { return nil }
        let digits = Array(identities.utf8)
        let count = training.count + validation.count
        guard digits.count == Self.identityLength * count else { return nil }
        return (0..<count).map { digits[(Self.identityLength * $0)..<(Self.identityLength * ($0 + 1))] }
    }
}
