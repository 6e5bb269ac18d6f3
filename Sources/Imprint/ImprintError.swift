public import ImprintCore

/// An error of training, evaluation, prediction or personalization.
///
/// Errors of files and images have other types, such as `ModelFileError` and `ImageError`.
public enum ImprintError: DescribedError, Equatable {
    /// A setting is outside its valid range.
    case invalidSetting(name: String, found: String, expected: String)
    /// The data set to evaluate on, or the validation set, has labels that the model does not have.
    ///
    /// `source` is the name of the data set, such as the path of a photo folder.
    case labelMismatch(source: String, unknown: [String], labels: [String])
    /// A label of the data set is reserved for photos without an object.
    ///
    /// `source` is the name of the data set, such as the path of the annotations.
    case reservedLabel(String, source: String)
    /// Two models to compare have different labels; each list contains the labels that only that model has.
    case labelsDiffer(first: [String], second: [String])
    /// Training diverged: the loss or a parameter became NaN or infinite.
    ///
    /// `epoch` counts from 1; for a detector (`isDetector`), it is the phase. `learningRate` is the peak learning rate of the run or, in a
    /// learning-rate range test, the rate of the step that diverged.
    case diverged(epoch: Int, learningRate: Float, isDetector: Bool)
    /// A base model does not end in a dense layer, so it has no head to train.
    case noHead(network: String)
    /// The model classifies whole images, and does not locate objects.
    case notADetector(network: String)
    /// A base model does not have a feature map with a stride of 16 pixels, so it cannot match logos.
    case noLocalFeatures(network: String)
    /// The head of a base model does not read globally averaged features.
    case noAveragePooling(network: String)
    /// An output of the network is NaN or infinite.
    case nonFiniteOutput(network: String)
    /// The network of a detector does not accept a scaled image, such as a level of an image pyramid; width and height are in pixels.
    case unsupportedImageSize(network: String, width: Int, height: Int, reason: String)
    /// There is not enough memory for a prediction.
    case outOfMemory(byteCount: Int)
    /// The classifier lacks a metric for some labels.
    case missingMetric(String, labels: [String], reason: MissingMetricReason)
    /// The time limit is too short to measure the photos for the choice of a recipe, which takes about `expected` seconds.
    case timeLimitTooShort(seconds: Double, expected: Double)
    /// The time limit passed before personalization read a photo that it can learn from; `read` photos were read.
    ///
    /// `reason` is the error of the first unreadable photo, if one is unreadable.
    case noUsablePhotoInTime(read: Int, of: Int, reason: String?)
    /// Training was stopped before the end of its first epoch.
    ///
    /// `checkpoint` is the file to resume from, if the run saves checkpoints.
    case stoppedTooEarly(checkpoint: String?)
    /// A new run would replace the checkpoint of an unfinished run.
    ///
    /// `progress` is the progress of that run, such as "epoch 4 of 100", or "phase 2 of 4" for a detector.
    case unfinishedCheckpoint(file: String, progress: String)
    /// Saliency maps are not available for detectors.
    case noSaliency(network: String)
    /// Training ended because too many photos became unreadable.
    ///
    /// Fewer than half of the training or validation photos are still readable, or all photos of a label are unreadable.
    ///
    /// The reason names the photos. `checkpoint` is the file to resume from, if the run saves checkpoints.
    case tooFewReadablePhotos(reason: String, checkpoint: String?)
    /// The training photos of a logo detector do not have exactly one label besides the labels of the logos.
    ///
    /// `source` is the name of the source of the photos, such as the path of a photo folder.
    case notOneLabelWithoutLogo(found: [String], logos: [String], source: String)
    /// All training photos of a logo detector show a logo.
    ///
    /// `source` is the name of the source of the photos, such as the path of a photo folder.
    case noPhotosWithoutLogo(logos: [String], source: String)
    /// Another process has locked the checkpoint folder.
    case checkpointInUse(folder: String)
    /// The data set contains none of the validation photos of the run to resume.
    case missingValidationPhotos(count: Int)
    /// The checkpoint belongs to a run with other settings.
    case checkpointMismatch(file: String, setting: String, found: String, expected: String)
    /// The checkpoint belongs to a run before a change of its input files.
    ///
    /// `input` names them: the artwork, the backgrounds, the base model, or the photos or their boxes.
    case checkpointOfOtherFiles(file: String, input: String)
    /// The data set has fewer than half of the photos of the run to resume with the same sizes and labels: `kept` of `count`.
    case checkpointOfOtherPhotos(file: String, kept: Int, of: Int)
    /// The run to resume has nothing left to train, and its photos have changed, so its model cannot be made again.
    ///
    /// `change` describes the change, such as "3 new, 2 missing". `canTrainLonger` is whether the run can resume with more epochs or time, which
    /// the run of a detector cannot.
    case finishedWithOtherPhotos(file: String, change: String, canTrainLonger: Bool)
    /// The checkpoint cannot be read; the reason names the file.
    case unusableCheckpoint(reason: String)
    /// The classifier does not have this label.
    case unknownLabel(String, known: [String])
    /// Photos without boxes cannot add a label to a logo detector.
    case cannotAddLabel(String, known: [String])
    /// The model already has the label of a new logo.
    case labelExists(String, known: [String])
    /// A base model cannot be the backbone of a detector.
    case unsupportedBackbone(network: String)
    /// The network of a detector does not have the heat maps that training patches need.
    case unsupportedDetector(network: String, found: String, expected: String)
    /// Personalization needs a model that predicts one label per photo, not a multi-label model.
    case cannotPersonalizeMultiLabel(network: String)
    /// The model is an imported detector, which Imprint can run but not fine-tune or personalize.
    case cannotTrainImportedDetector(network: String)
    /// The model is a detector without a label for photos that show no object, so it can be evaluated only on photos with boxes.
    case needsBoxes(network: String)
    /// The model is of another kind than the evaluation is for: one label per photo, or several.
    case wrongKindOfModel(network: String, found: String, expected: String)
    /// The features of the photos exceed the memory limit.
    case featuresExceedMemoryLimit(byteCount: Int, limit: Int)
    /// A personalization diverged: a parameter is not finite, or is beyond the range of float16.
    case personalizationDiverged
    /// The session has no personalization to save.
    case nothingToSave
    /// A progress closure called a method that changes the session, which is training.
    case sessionIsTraining
    /// The file is not a feature cache.
    case notAFeatureCache(file: String)
    /// A photo has several labels or none, but the model predicts exactly one label.
    case notOneLabel(photo: String, labels: [String])
    /// The feature cache is cut off, or its digest does not match its content.
    case damagedFeatureCache(file: String)

    /// A description of the problem and how to fix it.
    public var description: String { text.sentence }

    private var text: String {
        switch self {
        case .invalidSetting(let name, let found, let expected):
            "\(name) is \(found), expected \(expected)"
        case .labelMismatch(let source, let unknown, let labels):
            "\(source) has labels that the model does not have: \(described(unknown, known: labels)). "
                + "Expected \(abbreviated(labels)). Rename the labels, or choose another model or data set"
        case .reservedLabel(let label, let source):
            "\(source) has the label \(quotedName(label)), which is reserved for photos without an object. Expected other labels. Rename the "
                + "label, or remove its boxes if they mark no object"
        case .labelsDiffer(let first, let second):
            "the models have different labels: only the first has \(described(first, known: second)), "
                + "only the second has \(abbreviated(second)). Compare models with the same labels"
        case .diverged(let epoch, let learningRate, let isDetector):
            "training diverged in \(progressUnit(isDetector: isDetector)) \(epoch): the loss is not finite at a learning rate of \(learningRate). "
                + "Train again with a lower learning rate, for example \(learningRate / 4)"
        case .notADetector(let network):
            "the model with the network \(network) classifies whole images and has no boxes, expected a detector. "
                + "Choose the model file of a detector, or train one"
        case .noHead(let network):
            "the network \(network.debugDescription) has no head to train: "
                + "it does not end in a dense layer and a softmax"
        case .noLocalFeatures(let network):
            "the network \(network.debugDescription) has no feature map for local features. Expected a convolutional network for colour "
                + "images with a feature map of a sixteenth of their size, such as EfficientNet-Lite0 or ResNet-18"
        case .noAveragePooling(let network):
            "the head of the network \(network.debugDescription) does not read globally averaged features, "
                + "so maximum pooling cannot be added to it. Train without maximum pooling"
        case .nonFiniteOutput(let network):
            "the network \(network.debugDescription) has an output that is not finite, because its parameters or "
                + "inputs are too large. Train the model again with a lower learning rate, or get the file again from "
                + "its source"
        case .unsupportedImageSize(let network, let width, let height, let reason):
            "the network \(network.debugDescription) does not accept an image of \(width)x\(height) pixels: \(reason). "
                + "Expected a network that accepts any size. Train the detector again, or get the file again from its source"
        case .outOfMemory(let byteCount):
            "a prediction needs \(byteCount / 1_048_576 + 1) MB of memory, which is not available. "
                + "Use fewer threads, or free memory"
        case .missingMetric(let metric, let labels, let reason):
            "the model has no \(metric) for \(abbreviated(labels)), \(reason.text)"
        case .timeLimitTooShort(let seconds, let expected):
            "the time limit of \(Int(seconds.rounded(.up))) s was reached before the photos were measured, which takes about "
                + "\(Int(min(expected, 1e9).rounded(.up))) s. Allow more time, or use fewer photos"
        case .noUsablePhotoInTime(let read, let count, let reason):
            "the time limit was reached after \(read) of \(count) photos, before a photo could be used. "
                + (reason.map { "\($0.sentence) " } ?? "") + "Increase the time limit, or remove unreadable photos"
        case .stoppedTooEarly(nil):
            "training was stopped too early, so there is no model"
        case .stoppedTooEarly(let checkpoint?):
            "training was stopped too early, so there is no model yet. "
                + "Resume from \(checkpoint)"
        case .unfinishedCheckpoint(let file, let progress):
            "\(file) is the checkpoint of a run in \(progress), which a new run would replace. "
                + "Resume it, choose another folder, or remove it"
        case .noSaliency(let network):
            "the detector \(network.debugDescription) has no saliency map: its detections have boxes instead"
        case .tooFewReadablePhotos(let reason, let checkpoint):
            "training ended because too many photos became unreadable. \(reason.sentence) Put the photos back, then "
                + (checkpoint.map { "resume from \($0)" } ?? "train again")
        case .notOneLabelWithoutLogo(let found, let logos, let source) where found.isEmpty:
            "\(source) has no label besides \(visibleNames(logos).joined(separator: ", ")). Expected one more, for photos without "
                + "these logos. Give these photos a label of their own: in a photo folder, put them into a "
                + "separate sub-folder"
        case .notOneLabelWithoutLogo(let found, let logos, let source):
            "\(source) has the labels \(visibleNames(found).joined(separator: ", ")) without artwork. Expected one, for photos "
                + "that do not show \(visibleNames(logos).joined(separator: ", ")). Give all of these photos one label (in a photo "
                + "folder, one sub-folder), or add artwork for the other labels"
        case .noPhotosWithoutLogo(let logos, let source):
            "\(source) has no training photos besides those of \(visibleNames(logos).joined(separator: ", ")). "
                + "Add photos without these logos"
        case .checkpointInUse(let folder):
            "the checkpoint folder \(folder) is locked by another process. Wait until it ends, or choose another folder"
        case .missingValidationPhotos(let count):
            "the data set has none of the \(count) validation photos of the run to resume. "
                + "Put them back, or start a new run with another checkpoint folder"
        case .checkpointMismatch(let file, let setting, let found, let expected):
            "\(file) is the checkpoint of a run with \(settingChange(setting, from: expected, to: found)). "
                + "Set it back to resume, or start a new run with another checkpoint folder"
        case .checkpointOfOtherFiles(let file, let input):
            "\(file) is the checkpoint of a run before a change of the \(input): files were added, removed or edited. "
                + "Restore the earlier files to resume, or start a new run with another checkpoint folder"
        case .checkpointOfOtherPhotos(let file, let kept, let count):
            "\(file) is the checkpoint of a run with other photos: the data set has \(kept) of its \(counted(count, "photo")) with the same "
                + "size and labels, expected at least half of them. "
                + (kept == 0
                    ? "To resume, use the same folder or list, which has the same paths" : "Put them back to resume")
                + ", or start a new run with another checkpoint folder"
        case .finishedWithOtherPhotos(let file, let change, let canTrainLonger):
            "\(file) is the checkpoint of a run with nothing left to train, and its photos have changed since (\(change)). "
                + "Put the earlier photos back to get its model\(canTrainLonger ? ", resume with more epochs or time," : "") "
                + "or start a new run with another checkpoint folder"
        case .unknownLabel(let label, let known):
            "\(quoted(label, similarTo: known)) is not a label of the classifier. "
                + "Use one of its labels: \(abbreviated(known))"
        case .cannotAddLabel(let label, let known):
            "\(quoted(label, similarTo: known)) is not a label of the logo detector, which knows "
                + "\(visibleNames(known).joined(separator: ", ")). A detector learns a new logo from its artwork or from photos with boxes. "
                + "Provide these, or rename the folder to a known label"
        case .labelExists(let label, let known):
            "the model already has the label \(quotedName(label)), expected a new label. Its labels are \(abbreviated(known)). "
                + "Choose another label, or train a detector of all logos again"
        case .unsupportedDetector(let network, let found, let expected):
            "the detector \(network.debugDescription) cannot learn new logos: it has \(found), expected \(expected). "
                + "Train a detector of all logos instead"
        case .unsupportedBackbone(let network):
            "the network \(network.debugDescription) cannot be the backbone of a detector. Expected a network for colour images with a feature "
                + "map of a sixteenth of their size, and without squeeze-and-excitation before it, such as EfficientNet-Lite0 or ResNet-18"
        case .cannotPersonalizeMultiLabel(let network):
            "the network \(network.debugDescription) belongs to a multi-label model, which cannot be personalized. Expected a model that "
                + "predicts one label per photo. Train the multi-label model again with the new photos in its list"
        case .cannotTrainImportedDetector(let network):
            "the network \(network.debugDescription) belongs to an imported detector, which can be neither fine-tuned nor personalized. "
                + "Expected a classifier, or a logo detector that Imprint trained"
        case .needsBoxes(let network):
            "the network \(network.debugDescription) belongs to a detector that finds objects, but does not label whole photos. "
                + "Evaluate it on photos with annotated boxes"
        case .wrongKindOfModel(let network, let found, let expected):
            "the network \(network.debugDescription) belongs to \(found), expected \(expected). "
                + "Use the evaluation for this kind of model, or choose another model"
        case .featuresExceedMemoryLimit(let byteCount, let limit):
            "the features of the photos need \(byteCount / 1024) KB of memory, "
                + "more than the limit of \(limit / 1024) KB. Use fewer photos, or raise the limit"
        case .notAFeatureCache(let file):
            "\(file) is not a feature cache. Choose another file"
        case .damagedFeatureCache(let file):
            "\(file) is an incomplete or damaged feature cache. Delete it; the next run computes the features again"
        case .personalizationDiverged:
            "the personalization diverged: a parameter is not finite, or is beyond the range of float16. "
                + "Use a lower penalty and rehearsal weight, or check the base model"
        case .notOneLabel(let photo, let labels):
            "\(photo) has \(labels.isEmpty ? "no label" : "the labels \(abbreviated(labels))"), expected exactly one, "
                + "because the model predicts one label per photo. Use a multi-label model, or remove the photo"
        case .sessionIsTraining:
            "a progress closure called a method that changes the session, which is training. "
                + "Call the method after training has ended"
        case .nothingToSave:
            "the session has no personalization to save. Add photos first"
        case .unusableCheckpoint(let reason):
            "\(reason.sentence) Remove this checkpoint to start a new run"
        }
    }
}

extension ImprintError {
    /// The reason why a classifier lacks a metric.
    public enum MissingMetricReason: Hashable, Sendable {
        /// No validation photo had these labels.
        case noValidationPhotos
        /// A personalization added these labels; metrics come only from training.
        case addedByPersonalization
        /// The model has no training record, for example because it was imported.
        case noTrainingRecord

        /// The reason and the fix, as the end of a message.
        fileprivate var text: String {
            switch self {
            case .noValidationPhotos:
                "because no validation photo had these labels. Choose a threshold yourself, or train again with validation photos of "
                    + "every label"
            case .addedByPersonalization:
                "because a personalization adds labels without metrics. Use one threshold for all labels, or train a "
                    + "model with these labels"
            case .noTrainingRecord:
                "because it has no training record, like an imported model. Use one threshold for all labels, or "
                    + "train a model with validation photos"
            }
        }
    }
}

/// Returns a list of the first five labels, in which invisible characters are escaped, and the number of the others.
func abbreviated(_ labels: [String]) -> String {
    guard !labels.isEmpty else { return "none" }
    return visibleNames(labels).prefix(5).joined(separator: ", ")
        + (labels.count > 5 ? " and \(counted(labels.count - 5, "more label"))" : "")
}

/// Returns a list of the first five unknown labels, each with the label that it probably means, and the number of the others.
private func described(_ unknown: [String], known: [String]) -> String {
    let named = unknown.prefix(5).map { label in
        let text = quoted(label, similarTo: known)
        return text == label.debugDescription ? label : text
    }
    return abbreviated(named + unknown.dropFirst(5))
}
