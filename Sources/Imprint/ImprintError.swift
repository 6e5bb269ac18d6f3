public import ImprintCore

/// What can go wrong in training, evaluating or classifying, beyond what files and images say themselves.
public enum ImprintError: DescribedError, Equatable {
    /// A setting is outside its range.
    case invalidSetting(name: String, found: String, expected: String)
    /// The folder to evaluate on has labels that the model does not know, or the other way round.
    case labelMismatch(folder: String, unknown: [String], labels: [String])
    /// Two models to be compared have not the same labels; these are those that only one of them has.
    case labelsDiffer(first: [String], second: [String])
    /// The loss is no longer a number.
    case diverged(epoch: Int, learningRate: Float)
    /// There is nothing to replace in a base: it has no dense layer at its end.
    case noHead(network: String)
    /// The head of a base to train from does not read means over the picture.
    case noMeans(network: String)
    /// What a model computes for an image are no numbers.
    case noConfidence(network: String)
    /// The memory for a prediction is not available.
    case outOfMemory(byteCount: Int)
    /// A model does not know from which confidence on some of its labels are to be believed.
    case notMeasured(what: String, labels: [String])
    /// Training was stopped before the first epoch was done; the file holds what was done, where checkpoints are written.
    case stoppedTooEarly(checkpoint: String?)
    /// There is a checkpoint of a run that has not ended, which a new run would replace.
    case unfinishedCheckpoint(file: String, epoch: Int, of: Int)
    /// A model that spots a mark says if it is, but not what speaks for it.
    case noSaliency(network: String)
    /// Training ended because too few photos can still be read: less than half of the training or validation photos, or none of a label.
    ///
    /// The reason names the photos. `checkpoint` is the file to resume from; nil if the run saves no checkpoints.
    case photosLost(reason: String, checkpoint: String?)
    /// Spotting marks takes exactly one label beside theirs; the folder has none, or several.
    case notOneLabelWithoutMark(found: [String], marks: [String], folder: String)
    /// All photos show a mark.
    case noPhotosWithoutMark(marks: [String], folder: String)
    /// Another process saves a run in the same folder.
    case checkpointInUse(folder: String)
    /// None of the images that a run measures on are there any more.
    case validationImagesLost(count: Int)
    /// A checkpoint belongs to a run with other settings.
    case checkpointMismatch(file: String, setting: String, found: String, expected: String)
    /// A checkpoint cannot be read; the reason names the file.
    case unusableCheckpoint(reason: String)
    /// A label that was to be forgotten, or that a photo does not bear, is none of the classifier's.
    case unknownLabel(String, known: [String])
    /// A model that spots marks cannot learn a new one from photos alone.
    case labelCannotBeAdded(String, known: [String])
    /// The features of the photos shown take more memory than they may.
    case noRoom(byteCount: Int, limit: Int)
    /// There is nothing to save.
    case nothingTaught
    /// A file that is to keep features holds something else.
    case foreignCache(file: String)
    /// A file of features is not as it was written.
    case damagedCache(file: String)

    /// A sentence that says what was found, what was expected and how to mend it.
    public var description: String {
        switch self {
        case .invalidSetting(let name, let found, let expected):
            "\(name) is \(found), expected \(expected)"
        case .labelMismatch(let folder, let unknown, let labels):
            "\(folder) has the folders \(unknown.joined(separator: ", ")), which are no labels; "
                + "the labels are \(few(labels)). Rename the folders, or use the model or data set that has them"
        case .labelsDiffer(let first, let second):
            "the models have not the same labels: only the first has \(few(first)), only the second \(few(second)); compare models "
                + "that tell the same labels apart"
        case .diverged(let epoch, let learningRate):
            "the loss is no longer a number in epoch \(epoch), at a learning rate of \(learningRate); "
                + "train again with a lower one, for example \(learningRate / 4)"
        case .noHead(let network):
            "the network \"\(network)\" has no dense layer before a softmax at its end, so there is no head to train or tune; where it ends in "
                + "an averaged convolution or in sigmoids, imprint train --base gives it one"
        case .noMeans(let network):
            "the head of the network \"\(network)\" of the base does not read means over the picture, so that it cannot read maxima "
                + "as well; leave out poolsMaximum (--pool-maximum)"
        case .noConfidence(let network):
            "the network \"\(network)\" of the model computes no numbers for an image: its parameters or its preprocessing are "
                + "too large; train it again with a lower learning rate, or get the file again from where it came"
        case .outOfMemory(let byteCount):
            "not enough memory for a prediction: it needs \(byteCount / 1_048_576 + 1) MB more; use fewer threads at once, or free memory"
        case .notMeasured(let what, let labels):
            "the model has no \(what) of \(few(labels))"
                + ": its training measured none on images of them, nor does a personalization of labels that it adds; choose a threshold as a "
                + "number, or train it again with images of every label to validate on"
        case .stoppedTooEarly(nil):
            "training was stopped before its first epoch was done, so there is no model"
        case .stoppedTooEarly(let checkpoint?):
            "training was stopped before its first epoch was done, so there is no model yet; resume from \(checkpoint)"
        case .unfinishedCheckpoint(let file, let epoch, let epochs):
            "\(file) is the checkpoint of a run in epoch \(epoch) of \(epochs), which a new run would replace; resume it, or choose "
                + "another folder, or remove it"
        case .noSaliency(let network):
            "the network \"\(network)\" spots a mark and has no map of what speaks for a label; its observations have a box"
        case .photosLost(let reason, let checkpoint):
            "training ended because too few photos were left of those that it had read before. \(reason) Put the photos back, then "
                + (checkpoint.map { "resume from \($0)" } ?? "train again")
                + ", or with more --memory to read them but once"
        case .notOneLabelWithoutMark(let found, let marks, let folder) where found.isEmpty:
            "\(folder) has no label but \(marks.joined(separator: ", ")), expected one more, whose photos show none of these; put such "
                + "photos into a folder of their own beside them"
        case .notOneLabelWithoutMark(let found, let marks, let folder):
            "\(folder) has the labels \(found.joined(separator: ", ")) without artwork, expected one, whose photos show no "
                + "\(marks.joined(separator: ", ")); put all of these photos into one folder, or give artwork for the others too"
        case .noPhotosWithoutMark(let marks, let folder):
            "\(folder) has no photos to train on but those of \(marks.joined(separator: ", ")); add photos that show none of these"
        case .checkpointInUse(let folder):
            "\(folder) is where another process saves its run just now; wait for its end, or choose another folder"
        case .validationImagesLost(let count):
            "none of the \(count) photos that the run to resume validates on is in the data set any more, under its name; "
                + "put them back, or begin anew with another folder for checkpoints"
        case .checkpointMismatch(let file, let setting, let found, let expected):
            "\(file) is the checkpoint of another run: \(setting) is \(found), expected \(expected); set it back to resume, or begin "
                + "anew with another folder"
        case .unknownLabel(let label, let known):
            "\(label.debugDescription) is no label of the classifier; use one of its labels, \(few(known))"
        case .labelCannotBeAdded(let label, let known):
            "\(label.debugDescription) is no label of the model, which spots marks and has \(known.joined(separator: ", ")); to add a mark, "
                + "train a model with --artwork of both, or rename the folder to one of its labels"
        case .noRoom(let byteCount, let limit):
            "the features of the photos would take \(byteCount / 1024) KB, more than the \(limit / 1024) KB they may; show fewer photos, or "
                + "allow more memory"
        case .foreignCache(let file):
            "\(file) is no file of features, expected one that imprint personalize --cache made, or none yet; choose another name"
        case .damagedCache(let file):
            "\(file) is damaged: the digest of its features is another than it says; remove it, so that they are computed anew"
        case .nothingTaught:
            "nothing was taught, so there is nothing to save; show photos first"
        case .unusableCheckpoint(let reason):
            "\(reason). This file is a checkpoint to resume from: remove it to begin anew"
        }
    }
}

/// The first of some labels, and how many more there are.
func few(_ labels: [String]) -> String {
    guard !labels.isEmpty else { return "none" }
    return labels.prefix(5).joined(separator: ", ") + (labels.count > 5 ? " and \(labels.count - 5) more labels" : "")
}
