import Foundation
import ImprintImages
import Testing

@Suite("Formats of bounding boxes") struct BoxFormatTests {
    @Test(
        "A format is recognized by the extension and the content of a file",
        arguments: [
            ("a.json", "{\"info\": {\"images\": 1},\n\"images\": [], \"annotations\": []}", BoxFormat.coco),
            ("a.json", " [{\"image\": \"a.jpg\", \"annotations\": []}]", .createML),
            ("a.json", "[{\"annotation\": [], \"imagefilename\": \"a.jpg\"}]", .createML),
            ("a.xml", "<?xml version=\"1.0\"?>\n<annotation/>", .pascalVOC),
            ("a.yaml", "names: [cat]\ntrain: images", .yolo), ("a.YML", "val: images\nnames: [cat]", .yolo),
            ("a.yaml", "names: [cat]\ntest: images", .yolo), ("a.yaml", "names: [cat]\nvalidation: images", .yolo),
            ("a.yaml", "names: [cat]\npath: images", .yolo), ("a.yaml", "epochs: 3\ntrain: images", nil),
            ("a.json", "{\"images\": [{\"annotations\": []}]}", nil), ("a.json", "[{\"annotations\": []}]", nil),
            ("a.json", "[{\"photo\": \"a.jpg\", \"label\": \"annotations\"}]", nil), ("a.json", "[]", nil),
            ("a.json", "{\"image\": \"a.jpg\", \"annotations\": []}", nil), ("a.xml", "<plist/>", nil),
            ("a.txt", "names: [cat]\ntrain: images", nil), ("a.csv", "photo,label\n", nil), ("a.json", "", nil),
        ] as [(String, String, BoxFormat?)])
    func formats(name: String, text: String, format: BoxFormat?) {
        #expect(BoxFormat(Data(text.utf8), of: URL(filePath: name)) == format)
    }
}
