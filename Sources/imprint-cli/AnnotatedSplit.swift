internal import ArgumentParser
internal import Foundation
internal import ImprintTraining

/// The training photos of annotations, and the photos of a validation set that --validation names.
struct AnnotatedSplit {
    let training: BoxAnnotations
    /// The photos of the validation set; nil without --validation.
    let validation: BoxAnnotations?

    /// - Parameters:
    ///   - annotations: The annotations.
    ///   - url: A folder with some of the photos of the annotations, or other annotations; nil without a validation set.
    ///   - read: Reads annotations; its second argument is whether they are the other annotations of a validation set.
    /// - Throws: `ValidationError` if the folder has all photos of the annotations, and the errors of `read`.
    init(_ annotations: URL, validation url: URL?, read: (URL, _ isValidation: Bool) throws -> BoxAnnotations) throws {
        let boxes = try read(annotations, false)
        guard let url else {
            (training, validation) = (boxes, nil)
            return
        }
        let split = boxes.split(validationFolder: url)
        guard !split.validation.photos.isEmpty else {
            (training, validation) = (boxes, try read(url, true))
            return
        }
        guard !split.training.photos.isEmpty else {
            throw ValidationError(
                "--validation: \(url.displayPath) contains all \(split.validation.photos.count) photos of --annotations, expected only "
                    + "some of them. Name a smaller folder, or other annotations.")
        }
        (training, validation) = split
    }
}
