internal import Imprint
public import ImprintCore

/// An error of a cross-validation, except errors of training and evaluation.
public enum CrossValidationError: DescribedError, Equatable {
    /// A label has fewer groups of photos than there are folds.
    case tooFewGroups(label: String, groups: Int, photos: Int, folds: Int)
    /// All photos of a label are in one fold, so the model for this fold would not know the label.
    case labelInOneFold(label: String, fold: Int, seed: UInt64)
    /// A group names a photo that the folder, list or annotation file does not have.
    case unknownPhoto(path: String, source: String)
    /// A group has a path that annotation files in different folders use for different photos.
    case ambiguousPhoto(path: String, photos: [String])
    /// Another cross-validation uses the folder of finished folds.
    case folderInUse(folder: String)
    /// The folder of finished folds belongs to a cross-validation with other settings.
    case otherSettings(folder: String, setting: String, found: String, expected: String)
    /// The folder of finished folds belongs to a cross-validation before the files of some inputs, such as the photos, changed.
    case otherInputs(folder: String, inputs: [String])
    /// A file of a finished fold cannot be used.
    case unusableFold(file: String, reason: String)
    /// The model of a fold has different labels from the model of the first fold, so their predictions cannot be pooled.
    case differentLabels(fold: Int, seed: UInt64, found: [String], expected: [String])

    /// A description of the problem and how to fix it.
    public var description: String { text.sentence }

    private var text: String {
        switch self {
        case .tooFewGroups(let label, let groups, let photos, let folds):
            "the label \(quotedName(label)) has \(counted(photos, "photo")) in "
                + "\(counted(groups, "group")) of near-duplicates and bursts, expected at least \(folds) groups for "
                + "\(folds) folds. "
                + (groups < 2 ? "" : "Use at most \(groups) folds, or ") + (groups < 2 ? "Add" : "add")
                + " photos of this label in other scenes"
        case .labelInOneFold(let label, let fold, let seed):
            "all photos of the label \(quotedName(label)) are in fold \(fold) (seed \(seed)), expected photos in at least two folds. "
                + "Use more folds, smaller groups, or another seed"
        case .unknownPhoto(let path, let source):
            "a group of photos has \(path.debugDescription), which is not a photo in \(source). Expected paths relative to the folder, or as "
                + "in the list or the annotation file. Correct the path or remove it"
        case .ambiguousPhoto(let path, let photos):
            "a group of photos has \(path.debugDescription), which is the name of \(counted(photos.count, "photo")) in different folders. "
                + "Write the path of one of them: \(photos.map { quotedName($0) }.joined(separator: " or "))"
        case .folderInUse(let folder):
            "the folder of finished folds \(folder) is in use by another cross-validation. Wait until it ends, or choose another folder"
        case .otherSettings(let folder, let setting, let found, let expected):
            "\(folder) has the finished folds of a cross-validation with \(settingChange(setting, from: expected, to: found)). "
                + "Set it back to continue, or choose another folder"
        case .otherInputs(let folder, let inputs):
            "\(folder) has the finished folds of a cross-validation before a change of the \(inputs.joined(separator: " and the ")): files were "
                + "added, removed or edited. Restore the earlier files to continue, or choose another folder"
        case .unusableFold(let file, let reason):
            "\(file) is not a usable fold: \(reason). Remove the file to train this fold again, or choose another folder"
        case .differentLabels(let fold, let seed, let found, let expected):
            "the model of fold \(fold) (seed \(seed)) has the labels \(visibleNames(found).joined(separator: ", ")). "
                + "Expected the labels of the first fold, in the same order: \(visibleNames(expected).joined(separator: ", ")). "
                + "Remove the kept file of the wrong fold to train it again"
        }
    }
}
