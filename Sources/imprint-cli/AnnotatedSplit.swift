internal import ArgumentParser
internal import Foundation
internal import ImprintCore
internal import ImprintTraining

/// The training photos of annotations, and the photos of their validation set.
struct AnnotatedSplit {
    let training: BoxAnnotations
    /// The photos of the validation set; nil without one.
    let validation: BoxAnnotations?

    /// Reads annotations, or a part of the data set that data.yaml splits.
    ///
    /// The photos are in the folder `photos`, or beside the annotations if it is nil. All parts are read if `part` is nil.
    typealias Reader = (_ annotations: URL, _ photos: URL?, _ part: DatasetPart?) throws -> BoxAnnotations

    /// - Parameters:
    ///   - annotations: The annotations.
    ///   - url: A folder with some of the photos of the data set, or other annotations; nil without --validation.
    ///   - part: The part of the annotations to read without --validation; nil for all parts.
    ///   - usesValidationPart: Whether, without --validation, the key `val` of data.yaml names the validation set.
    ///   - splitAdvice: The advice about photos in the folders of several parts.
    ///   - reader: Reads annotations. Their warnings are printed, equal ones of several parts once.
    /// - Throws: `ValidationError` if the folder has all photos of the annotations, and the errors of `reader`.
    init(
        _ annotations: URL, validation url: URL?, part: DatasetPart?, usesValidationPart: Bool,
        splitAdvice: SplitAdvice = .dataYAML, reader: Reader
    ) throws {
        var printed: Set<String> = []
        func read(
            _ annotations: URL, _ photos: URL?, _ part: DatasetPart?, _ advice: SplitAdvice = .dataYAML
        ) throws -> BoxAnnotations {
            let boxes = try reader(annotations, photos, part)
            boxes.printWarnings(advice, besides: &printed)
            return boxes
        }
        guard let url else {
            let boxes = try read(annotations, nil, part, splitAdvice)
            let hasPart = usesValidationPart && boxes.availableParts.contains(.validation)
            let others = try hasPart ? read(annotations, nil, .validation) : nil
            let isEqual = others.map { Self.contains($0, boxes) } ?? false
            if isEqual { Terminal.warn("val has all photos of train, so some of them are held out instead.") }
            (training, validation) = (boxes, isEqual ? nil : others)
            return
        }
        let boxes = try read(annotations, nil, .training, splitAdvice)
        let split = boxes.split(validationFolder: url)
        guard split.validation.photos.isEmpty else {
            guard !split.training.photos.isEmpty else { throw Self.noTrainingPhotos(split.validation, url) }
            (training, validation) = split
            return
        }
        training = boxes
        do {
            validation = try read(url, nil, .validation)
        } catch BoxAnnotationsError.unknownFormat where !boxes.availableParts.isEmpty {
            // A folder of photos of another part of the data set.
            validation = try read(annotations, url, nil)
        }
    }

    /// Throws `ValidationError` if the validation set `url` has all photos of the annotations, which also stand for a missing key val.
    func requireTrainingPhotos(validation url: URL?) throws {
        guard let url, let validation, Self.contains(validation, training) else { return }
        guard validation.availableParts.isEmpty || validation.availableParts.contains(.validation) else {
            throw ValidationError(
                "--validation: \(url.displayPath) names no validation set, expected the key val. Add the key with the path of the photos, "
                    + "such as val: images/val, or name a folder of validation photos.")
        }
        throw Self.noTrainingPhotos(training, url)
    }

    /// Warns about photos that are in both sets, because training leaves them out of the training set.
    func warnAboutSharedPhotos() {
        guard let validation else { return }
        let count = Self.sharedCount(validation, training)
        guard count > 0 else { return }
        Terminal.warn(
            "\(counted(count, "photo")) \(count == 1 ? "is" : "are") in both the training and the validation set, and only used for "
                + "validation.")
    }

    private static func noTrainingPhotos(_ photos: BoxAnnotations, _ url: URL) -> ValidationError {
        ValidationError(
            "--validation: \(url.displayPath) contains all \(photos.photos.count) photos of --annotations, expected only "
                + "some of them. Name a smaller folder, or other annotations.")
    }

    /// Returns whether annotations contain all photos of others.
    private static func contains(_ annotations: BoxAnnotations, _ others: BoxAnnotations) -> Bool {
        sharedCount(annotations, others) == others.photos.count
    }

    /// Returns the number of photos of other annotations that annotations contain.
    private static func sharedCount(_ annotations: BoxAnnotations, _ others: BoxAnnotations) -> Int {
        let photos = Set(annotations.photos.map { $0.url.resolvingSymlinksInPath() })
        return others.photos.count { photos.contains($0.url.resolvingSymlinksInPath()) }
    }
}

/// The advice of a subcommand about photos in the folders of several parts, such as train and val, that are read together.
enum SplitAdvice {
    /// The advice of the library to name the parts in data.yaml.
    case dataYAML
    /// Also the option --validation, unless there is a test set, which would remain among the training photos.
    case validation
    /// Also the argument with the folder of the photos.
    case photoFolder
    /// No warning, because --validation names the validation set, unless there is a test set, which remains among the training photos.
    case testSet

    /// Returns the end of the warning.
    fileprivate func text(_ folders: [DatasetPart: URL]) -> String {
        switch self {
        case .validation:
            guard folders[.test] == nil, let folder = folders[.validation] else { return "" }
            return ", or name the validation photos with --validation \(shellQuoted(folder.displayPath))"
        case .photoFolder:
            guard let folder = folders[.test] ?? folders[.validation] else { return "" }
            return ", or pass the folder of the photos as an argument, such as \(shellQuoted(folder.displayPath))"
        case .dataYAML, .testSet: return ""
        }
    }
}

extension BoxAnnotations {
    /// Prints the warnings; with --quiet, without the parts of the dataset split that were read.
    func printWarnings(_ advice: SplitAdvice = .dataYAML) {
        var printed: Set<String> = []
        printWarnings(advice, besides: &printed)
    }

    /// Prints the warnings that were not printed before, and adds them to `printed`.
    fileprivate func printWarnings(_ advice: SplitAdvice, besides printed: inout Set<String>) {
        for warning in warnings where printed.insert(warning).inserted {
            if warning == partsLine {
                Terminal.note("Note: \(warning)")
            } else if warning != splitsLine {
                Terminal.warn(warning)
            } else if advice != .testSet || splitFolders[.test] != nil {
                Terminal.warn(warning + advice.text(splitFolders))
            }
        }
    }
}
