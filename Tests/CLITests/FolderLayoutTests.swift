import Foundation
import TestSupport
import Testing

/// Folders of other layouts than one sub-folder of photos per label.
@Suite struct FolderLayoutTests {
    @Test(
        "train, personalize, audit and evaluate reject the same folders with the same error",
        arguments: [
            (
                ["set/photos/bright/0.png", "set/photos/dark/0.png"],
                "set: found only the sub-folder \"photos\", which has sub-folders of photos (bright, dark). Expected"
            ),
            (
                ["set/yolo/images/0.png", "set/yolo/labels/0.txt"],
                "set/yolo: found the folders images and labels of a data set with bounding boxes, expected"
            ),
            (
                ["set/images/0.png", "set/labels/0.txt"],
                "set: found the folders images and labels of a data set with bounding boxes, expected"
            ),
            (
                ["set/all/train/dark/0.png", "set/all/test/dark/1.png"],
                "set/all: found the folders test and train of a dataset split, which have the same"
            ),
            (
                ["set/seg_train/seg_train/bright/0.png", "set/seg_train/seg_train/dark/0.png"],
                "set: found only the sub-folder \"seg_train/seg_train\", which has sub-folders of photos (bright, dark)."
            ),
            (
                [
                    "set/seg_train/seg_train/bright/0.png", "set/seg_train/seg_train/dark/0.png",
                    "set/seg_test/seg_test/bright/1.png", "set/seg_test/seg_test/dark/1.png",
                ], "set: found the folders seg_test/seg_test and seg_train/seg_train of a dataset split, which have"
            ),
            (
                ["set/obj_train_data/0.png", "set/obj_train_data/0.txt", "set/classes.txt"],
                "set: found classes.txt of a data set with bounding boxes, expected"
            ),
        ])
    func sameErrors(paths: [String], message: String) throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(photos: [:], to: folder)
            for path in paths where path.hasSuffix(".png") { try writeGreyPhoto(folder.appending(path: path), 90) }
            for path in paths where path.hasSuffix(".txt") {
                let file = folder.appending(path: path)
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data("0 0.5 0.5 0.2 0.2".utf8).write(to: file)
            }
            for command in [
                "train set --output new.imprint", "personalize m.imprint set --output me", "audit set",
                "evaluate m.imprint set",
            ] {
                let run = try shell("$imprint \(command)", folder: folder)
                #expect(run.status == 1 && run.output.isEmpty, "\(command): \(run.output)")
                #expect(run.errors.contains(message), "\(command): \(run.errors)")
            }
        }
    }

    @Test("A single label of the model may have several sub-folders of photos") func knownLabel() throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(photos: ["set/dark/2023/0.png": 20, "set/dark/2024/1.png": 30], to: folder)
            let evaluated = try imprint("evaluate", "m.imprint", "set", "--json", folder: folder)
            #expect(evaluated.status == 0 && evaluated.lines.last?["images"] as? Int == 2, "\(evaluated.errors)")
            let audited = try imprint("audit", "set", folder: folder)
            #expect(audited.status == 1, "\(audited.output)")
            let text = "If \"dark\" is a label, move the photos out of its sub-folders."
            #expect(audited.errors.contains(text), "\(audited.errors)")
            // The training photos of a validation set have the label.
            try writeGreyPhoto(folder.appending(path: "photos/dark/0.png"), 40)
            let compared = try imprint("audit", "photos", "--validation", "set", folder: folder)
            #expect(compared.status == 0, "\(compared.errors)")
        }
    }
}
