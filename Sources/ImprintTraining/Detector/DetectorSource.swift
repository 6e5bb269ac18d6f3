internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// The photos of a detector run: labelled photos, and annotated photos with boxes.
///
/// The labels of an annotated photo are the labels of its objects, so a split holds out a part of the objects of every label.
struct DetectorSource: TrainingSource {
    let labels: [String]
    let items: [TrainingPhoto]
    let digest: String
    let name: String
    /// The objects of the annotated photos.
    let objects: [URL: [AnnotatedPhoto.Object]]
    /// The labelled photos, without the validation photos.
    private let labelled: any TrainingSource
    private let annotatedPaths: [URL: String]
    /// The labels of the largest objects of the annotated photos.
    private let mainLabels: [URL: String]

    /// Creates a source.
    /// - Parameters:
    ///   - photos: The labelled photos, with one label each; nil without any.
    ///   - labels: The labels of the photos, followed by the labels that only logos have.
    ///   - noLogoLabel: The one of `labels` for photos that show no logo.
    ///   - annotations: The annotated photos; nil without any.
    ///   - validation: The annotated photos of a separate validation set, which are removed from the labelled photos; nil without any.
    /// - Throws: The errors of `BoxAnnotations.cocoData(relativeTo:)`.
    init(
        _ photos: (any TrainingSource)?, labels: [String], noLogoLabel: String, annotations: BoxAnnotations?,
        validation: BoxAnnotations? = nil
    ) throws {
        let labelled: any TrainingSource = photos?.removing(validation?.locations ?? []) ?? InMemorySource(labels: [])
        self.labelled = labelled
        self.labels = labels
        guard let annotations else {
            (items, digest, name, objects) = (labelled.items, labelled.digest, labelled.name, [:])
            (annotatedPaths, mainLabels) = ([:], [:])
            return
        }
        let indices = Dictionary(
            labels.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        // Crowds are not objects, and a label that only crowds have is not a label of the detector.
        let known = annotations.photos.map { photo in
            photo.objects.filter { !$0.isCrowd && indices[$0.label] != nil }
        }
        let noLogo = [indices[noLogoLabel] ?? 0]
        // A photo with boxes does not count a second time as a labelled photo.
        let annotated = annotations.locations
        let others = labelled.items.filter { !annotated.contains($0.url.resolvingSymlinksInPath()) }
        items =
            others
            + zip(annotations.photos, known).map { photo, objects in
                TrainingPhoto(
                    url: photo.url, labels: objects.isEmpty ? noLogo : objects.compactMap { indices[$0.label] })
            }
        let boxes = SHA256.hexadecimal(of: Array(try annotations.cocoData()))
        // Photos that were edited usually have another size.
        let sizes = annotations.photos.map { "\(FileStatus($0.url)?.size ?? 0)" }.joined(separator: " ")
        digest = SHA256.hexadecimal(of: Array("\(labelled.digest)\n\(boxes)\n\(sizes)\n".utf8))
        name = labelled.items.isEmpty ? "the annotated photos" : labelled.name
        objects = Dictionary(annotations.photos.map { ($0.url, $0.objects) }, uniquingKeysWith: { $0 + $1 })
        // The index keeps photos of the same name in different folders apart, wherever the data set is.
        annotatedPaths = Dictionary(
            annotations.photos.enumerated().map { ($1.url, "annotated/\($0)/\($1.url.lastPathComponent)") },
            uniquingKeysWith: { first, _ in first })
        mainLabels = Dictionary(
            zip(annotations.photos, known).compactMap { photo, objects in
                objects.max { $0.box.width * $0.box.height < $1.box.width * $1.box.height }.map {
                    (photo.url, $0.label)
                }
            }, uniquingKeysWith: { first, _ in first })
    }

    func identifier(of item: TrainingPhoto) -> String { annotatedPaths[item.url] ?? labelled.identifier(of: item) }

    /// Returns the name of a photo in messages: for an annotated photo, its location, because `identifier(of:)` is internal to checkpoints.
    func name(of item: TrainingPhoto) -> String {
        annotatedPaths[item.url] == nil ? labelled.identifier(of: item) : item.url.displayPath
    }

    /// Returns the label that represents a photo: of several objects, the label of the largest one.
    func label(of item: TrainingPhoto) -> String { mainLabels[item.url] ?? labels[item.label] }

    var ignored: [URL] { labelled.ignored }
}

extension TrainingSource {
    /// Checks the labels and the photos before a detector is trained on them.
    /// - Throws: `ImageError.invalidSource` if they are inconsistent, or if a photo has several labels or none.
    func checkForDetector() throws(ImageError) {
        try checkLabelsAndIdentifiers()
        if let photo = items.first(where: { $0.labels.count != 1 }) {
            throw .invalidSource(
                name: name,
                found: "\(counted(photo.labels.count, "label")) of the photo \(identifier(of: photo).debugDescription)",
                expected: "exactly one, or photos with boxes")
        }
    }

    /// Returns the source without the photos at some locations, whose symbolic links are resolved.
    fileprivate func removing(_ locations: Set<URL>) -> any TrainingSource {
        guard !locations.isEmpty else { return self }
        let others = items.filter { !locations.contains($0.url.resolvingSymlinksInPath()) }
        guard others.count < items.count else { return self }
        return TrainingSubset(self, items: others)
    }
}
