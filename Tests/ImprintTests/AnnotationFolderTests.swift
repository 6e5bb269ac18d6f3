import Foundation
import ImprintImages
import ImprintTraining
import TestSupport
import Testing

/// The files that are searched in the folder of a data set.
@Suite("Folders of annotations") struct AnnotationFolderTests {
    /// A COCO file.
    private static let coco = AnnotationFormat.coco.files["set.json"] ?? ""

    /// A line of a YOLO text file.
    private static let box = "0 .5 .5 .5 .5"

    /// A Pascal VOC file of the photo a.png.
    private static let file = AnnotationFormat.voc.files["Annotations/a.xml"] ?? ""

    @Test(
        "Hidden folders are skipped",
        arguments: [(.coco, ".idea/misc.xml"), (.voc, "Annotations/.ipynb_checkpoints/a-checkpoint.xml")]
            as [(AnnotationFormat, String)])
    func hiddenFolders(format: AnnotationFormat, path: String) throws {
        try withAnnotatedPhotos(format.files.merging([path: Self.file]) { $1 }) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map { boxTexts($0).count } == [2, 0] && annotations.warnings.isEmpty)
        }
    }

    @Test("The folder can be a link", arguments: [AnnotationFormat.voc, .yolo])
    func linkedFolder(format: AnnotationFormat) throws {
        let unused = format == .yolo ? ["labels/c.txt": ""] : [:]
        try withAnnotatedPhotos(format.files.merging(unused) { $1 }) { folder in
            let link = folder.appending(path: "link")
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder)
            let annotations = try BoxAnnotations(contentsOf: link)
            #expect(annotations.photos.map { boxTexts($0).count } == [2, 0])
            #expect(annotations.warnings.count == unused.count)
            #expect(annotations.warnings.allSatisfy { $0.contains("(labels/c.txt)") }, "\(annotations.warnings)")
        }
    }

    @Test(
        "The sign of boxes in a folder of photos names a file or folders",
        arguments: [
            (["boxes.json": coco], ".", "boxes.json"), (["set/boxes.json": coco], "set", "boxes.json in set"),
            (["set/data.yaml": "names: [cat]\ntrain: images"], "set/images", "data.yaml in set"),
            (["set/labels/a.txt": box], "set/images", "the folders images and labels in set"),
            (["obj.names": "cat", "obj_train_data/sub/b.txt": box], "obj_train_data", "obj.names"),
            (["obj_train_data/a.txt": box], "obj_train_data", "a.txt in obj_train_data"),
            (["a.TXT": box], ".", "a.TXT"), (["c.txt": box], ".", nil),
            (["notes.json": "{}", "list.json": #"[{"image": "a.png", "label": "cat"}]"#], ".", nil),
            (["classes.txt": "cat", "a.txt": "a white cat on a chair"], ".", nil), ([:], "set", nil),
        ] as [([String: String], String, String?)])
    func signOfBoxes(files: [String: String], photoFolder: String, sign: String?) throws {
        try withAnnotatedPhotos(files, photoFolder: photoFolder) { folder in
            #expect(BoxAnnotations.sign(in: folder) == sign)
        }
    }

    @Test("The path of the folder can occur again below the folder") func repeatedPath() throws {
        try withTemporaryFolder { folder in
            try writeAnnotations(["again\(folder.path)/a.xml": Self.file], in: folder)
            try writeAnnotatedPhoto(folder.appending(path: "images/a.png"))
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map { boxTexts($0).count } == [2] && annotations.warnings.isEmpty)
        }
    }

    @Test("A name that is not UTF-8 is an error that names it") func undecodableName() throws {
        try withAnnotatedPhotos(AnnotationFormat.voc.files) { folder in
            let creation = try run(
                URL(filePath: "/bin/sh"), ["-c", "touch \"Annotations/$(printf 'caf\\351').xml\""], folder: folder)
            // Some file systems do not allow such names.
            guard creation.status == 0 else { return }
            let error = #expect(throws: ImageError.self) { try BoxAnnotations(contentsOf: folder) }
            #expect(error?.description.contains("caf\\xE9.xml") == true, "\(error?.description ?? "")")
        }
    }

    @Test(
        "A sub-folder that cannot be read is an error, except if the data set has no files there",
        .disabled(if: geteuid() == 0, "root can read every folder"))
    func unreadableFolder() throws {
        try withAnnotatedPhotos(AnnotationFormat.voc.files) { folder in
            func setPermissions(_ permissions: Int) throws {
                try FileManager.default.setAttributes(
                    [.posixPermissions: permissions], ofItemAtPath: folder.appending(path: "Annotations/sub").path)
            }
            try setPermissions(0)
            defer { try? setPermissions(0o755) }
            func message() -> String {
                #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }?.description ?? ""
            }
            let expected = "Annotations/sub: cannot be read: Permission denied"
            #expect(message().contains(expected))
            try FileManager.default.removeItem(at: folder.appending(path: "Annotations/a.xml"))
            #expect(message().contains(expected))
            try writeAnnotations(AnnotationFormat.coco.files, in: folder)
            #expect(try boxTexts(BoxAnnotations(contentsOf: folder).photos[0]).count == 2)
        }
    }
}
