import Foundation
import ImprintImages
import ImprintTraining
import TestSupport

/// A data set in each format: a.png of 200x100 pixels has the boxes cat (20, 10, 40, 20) and dog (100, 50, 50, 50),
/// b.png has none.
enum AnnotationFormat: String, CaseIterable, Sendable {
    case coco, createML, yolo, voc

    /// The files of the data set besides the photos.
    var files: [String: String] {
        switch self {
        case .coco:
            [
                "set.json": """
                {"images": [{"id": 7, "file_name": "a.png", "width": 200, "height": 100},
                {"id": 8, "file_name": "sub/b.png", "width": 200, "height": 100}],
                "annotations": [{"id": 1, "image_id": 7, "category_id": 3, "bbox": [20, 10, 40, 20], "iscrowd": 0,
                "segmentation": [[20, 10, 60, 10, 60, 30]], "area": 800},
                {"id": 2, "image_id": 7, "category_id": 1, "bbox": [100, 50, 50, 50.0], "iscrowd": 1}],
                "categories": [{"id": 1, "name": "dog"}, {"id": 3, "name": "cat", "supercategory": "animal"}]}
                """
            ]
        case .createML:
            [
                "set.json": """
                [{"image": "a.png", "annotations": [
                {"label": "cat", "coordinates": {"x": 40, "y": 20, "width": 40, "height": 20}},
                {"label": "dog", "coordinates": {"x": 125, "y": 75, "width": 50, "height": 50}}]},
                {"imagefilename": "sub/b.png", "annotation": []}]
                """
            ]
        case .yolo:
            [
                "data.yaml": "nc: 2\nnames: [dog, 'cat']  # two\n",
                "labels/a.txt": "1 0.2 0.2 0.2 0.2\n\n0 0.5 0.5 0.75 0.5 0.75 1 0.5 1\n", "labels/sub/b.txt": "",
            ]
        case .voc:
            [
                "Annotations/a.xml": """
                <?xml version="1.0"?><annotation><filename>a.png</filename>
                <size><width>200</width><height>100</height><depth>3</depth></size>
                <object><name>cat</name><difficult>0</difficult>
                <bndbox><xmin>20</xmin><ymin>10</ymin><xmax>60</xmax><ymax>30</ymax></bndbox>
                <part><name>head</name><bndbox><xmin>0</xmin><ymin>0</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></part>
                </object><object><name>dog</name><difficult>1</difficult>
                <bndbox><xmin>100</xmin><ymin>50</ymin><xmax>150</xmax><ymax>100</ymax></bndbox></object></annotation>
                """,
                "Annotations/sub/b.xml": "<annotation><filename>sub/b.png</filename></annotation>",
            ]
        }
    }

    /// The file whose content decides about the boxes.
    var boxFile: String {
        switch self {
        case .coco, .createML: "set.json"
        case .yolo: "labels/a.txt"
        case .voc: "Annotations/a.xml"
        }
    }
}

/// Creates files, with their folders.
func writeAnnotations(_ files: [String: String], in folder: URL) throws {
    for (path, text) in files { try writeFile(Data(text.utf8), to: folder.appending(path: path)) }
}

func writeFile(_ data: Data, to url: URL) throws {
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try data.write(to: url)
}

/// Writes a photo; a JPEG can have an EXIF orientation.
func writeAnnotatedPhoto(_ url: URL, width: Int = 200, height: Int = 100, orientation: Orientation = .up) throws {
    let image = RasterImage(width: width, height: height)
    guard url.pathExtension == "jpg" else { return try writeFile(Data(ImageFile.encodePNG(image)), to: url) }
    let jpeg = try ImageFile.encodeJPEG(image)
    let entry: [UInt8] = [0x12, 1, 3, 0, 1, 0, 0, 0, UInt8(orientation.rawValue), 0, 0, 0]
    let exif = Array("Exif\0\0II*\0".utf8) + [8, 0, 0, 0, 1, 0] + entry + [0, 0, 0, 0]
    try writeFile(Data(jpeg[..<2] + [0xFF, 0xE1, 0, UInt8(exif.count + 2)] + exif + jpeg[2...]), to: url)
}

/// Creates files and the photos a.png and sub/b.png, and calls `body` with the folder.
func withAnnotatedPhotos<Result>(
    _ files: [String: String], photoFolder: String = "images", _ body: (URL) throws -> Result
) throws -> Result {
    try withTemporaryFolder { folder in
        try writeAnnotations(files, in: folder)
        for photo in ["a.png", "sub/b.png"] {
            try writeAnnotatedPhoto(folder.appending(path: "\(photoFolder)/\(photo)"))
        }
        return try body(folder)
    }
}

/// Formats boxes in pixels, as in "cat 20 10 40 20", with an asterisk for a crowd.
func boxTexts(_ photo: AnnotatedPhoto) -> [String] {
    photo.objects.map { object in
        let (width, height) = (Float(photo.width), Float(photo.height))
        let box = [object.box.x * width, object.box.y * height, object.box.width * width, object.box.height * height]
        return "\(object.label) " + box.map { "\(Int($0.rounded()))" }.joined(separator: " ")
            + (object.isCrowd ? "*" : "")
    }
}

/// Reads COCO annotations of photos by the text of the array `annotations`.
func cocoText(
    _ annotations: String, images: String = "{\"id\": 7, \"file_name\": \"a.png\"}",
    categories: String = "{\"id\": 1, \"name\": \"cat\"}"
) -> String {
    "{\"images\": [\(images)], \"annotations\": [\(annotations)], \"categories\": [\(categories)]}"
}

/// Returns an annotation in the COCO format.
func cocoBox(_ box: String, category: String = "1", image: String = "7", id: Int = 12) -> String {
    "{\"id\": \(id), \"image_id\": \(image), \"category_id\": \(category), \"bbox\": [\(box)]}"
}
