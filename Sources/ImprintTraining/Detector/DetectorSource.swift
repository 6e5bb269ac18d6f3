internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// The photos of a detector run: a folder of labelled photos, and annotated photos with boxes.
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
    let folder: ImageFolder
    private let annotatedPaths: [URL: String]
    /// The labels of the largest objects of the annotated photos.
    private let mainLabels: [URL: String]

    /// Creates a source.
    /// - Parameters:
    ///   - folder: The labelled photos, with the labels of all logos and one more.
    ///   - noLogoLabel: The label of photos that show no logo.
    ///   - annotations: The annotated photos; nil without any.
    ///   - validation: The annotated photos of a separate validation set, which do not count as photos of the folder; nil without any.
    /// - Throws: The errors of `BoxAnnotations.cocoData(relativeTo:)`.
    init(
        _ folder: ImageFolder, noLogoLabel: String, annotations: BoxAnnotations?, validation: BoxAnnotations? = nil
    ) throws {
        let photos = folder.removing(validation?.locations ?? [])
        self.folder = photos
        labels = folder.labels
        guard let annotations else {
            (items, digest, name, objects) = (photos.items, photos.digest, folder.name, [:])
            (annotatedPaths, mainLabels) = ([:], [:])
            return
        }
        let indices = Dictionary(
            folder.labels.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        // Crowds are not objects, and a label that only crowds have is not a label of the detector.
        let known = annotations.photos.map { photo in
            photo.objects.filter { !$0.isCrowd && indices[$0.label] != nil }
        }
        let noLogo = [indices[noLogoLabel] ?? 0]
        // A photo with boxes does not count a second time as a photo of the folder.
        let annotated = annotations.locations
        let others = photos.items.filter { !annotated.contains($0.url.resolvingSymlinksInPath()) }
        items =
            others
            + zip(annotations.photos, known).map { photo, objects in
                TrainingPhoto(
                    url: photo.url, labels: objects.isEmpty ? noLogo : objects.compactMap { indices[$0.label] })
            }
        let boxes = SHA256.hexadecimal(of: Array(try annotations.cocoData()))
        digest = SHA256.hexadecimal(of: Array("\(photos.digest)\n\(boxes)\n".utf8))
        name = folder.items.isEmpty ? "the annotated photos" : folder.name
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

    func path(of item: TrainingPhoto) -> String { annotatedPaths[item.url] ?? folder.path(of: item) }

    /// Returns the label that represents a photo: of several objects, the label of the largest one.
    func label(of item: TrainingPhoto) -> String { mainLabels[item.url] ?? labels[item.label] }

    var ignored: [URL] { folder.ignored }
}

extension ImageFolder {
    /// Returns the folder without the photos at some locations, whose symbolic links are resolved.
    fileprivate func removing(_ locations: Set<URL>) -> ImageFolder {
        guard !locations.isEmpty else { return self }
        let others = items.filter { !locations.contains($0.url.resolvingSymlinksInPath()) }
        return others.count == items.count ? self : selecting(others)
    }
}
