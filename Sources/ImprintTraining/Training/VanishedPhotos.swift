internal import Foundation
internal import ImprintImages

/// The photos of a run that could be read at its start and no longer can be.
///
/// The run continues without them while enough are left. Enough means, of the training photos and of the validation photos
/// separately: at least half of them, and at least one of every label that had any.
struct VanishedPhotos {
    /// The training or the validation photos.
    private struct Side {
        let items: [ImageFolder.Item]
        /// How many photos of each label are left.
        var left: [Int: Int]
        var vanished: [SkippedImage] = []
    }

    /// All of them, in the order in which the run noticed.
    private(set) var images: [SkippedImage] = []
    /// Why the run cannot continue; nil while enough photos are left.
    private(set) var problem: ImageError?
    /// Whether too few validation photos are left to measure on.
    private(set) var affectsValidation = false
    private var urls: Set<URL> = []
    private let labels: [String]
    private var sides: [Side]
    /// The side and the label of each photo.
    private let places: [URL: (side: Int, label: Int)]

    /// - Parameter labels: The names of the labels, by their index.
    init(training: [ImageFolder.Item], validation: [ImageFolder.Item], labels: [String]) {
        self.labels = labels
        sides = [training, validation].map { items in
            Side(items: items, left: Dictionary(items.map { ($0.label, 1) }, uniquingKeysWith: +))
        }
        places = Dictionary(
            training.map { ($0.url, (0, $0.label)) } + validation.map { ($0.url, (1, $0.label)) },
            uniquingKeysWith: { first, _ in first })
    }

    /// Records a photo that cannot be read any more.
    /// - Returns: Whether it is the first record of this photo.
    mutating func add(_ image: SkippedImage) -> Bool {
        guard urls.insert(image.url).inserted else { return false }
        images.append(image)
        guard let (index, label) = places[image.url] else { return true }
        sides[index].vanished.append(image)
        sides[index].left[label, default: 0] -= 1
        let found = sides[index]
        let isEnough = found.left.values.allSatisfy { $0 > 0 } && 2 * found.vanished.count <= found.items.count
        guard !isEnough else { return true }
        if index == 1 { affectsValidation = true }
        do throws(ImageError) {
            try SkippedImage.checkEnoughIsLeft(
                of: found.items, readable: found.items.filter { !urls.contains($0.url) }, skipped: found.vanished,
                labels: labels)
        } catch {
            problem = problem ?? error
        }
        return true
    }
}
