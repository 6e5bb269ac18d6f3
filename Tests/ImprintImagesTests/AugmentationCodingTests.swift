import Foundation
import ImprintImages
import Testing

@Suite("Augmentation as JSON") struct AugmentationCodingTests {
    @Test("Kinds are encoded in a fixed order, so equal values give equal bytes") func order() throws {
        let text = String(
            decoding: try JSONEncoder().encode(Augmentation(Set(Augmentation.Kind.allCases))), as: UTF8.self)
        let kinds = #""flip","flip-vertical","rotate","crop","exposure","blur","noise","perspective","color","jpeg""#
        #expect(text == #"{"kinds":[\#(kinds)]}"#)
    }

    @Test("Decoding restores the encoded kinds", arguments: [[], [.blur], [.crop, .flip]] as [Set<Augmentation.Kind>])
    func roundTrip(kinds: Set<Augmentation.Kind>) throws {
        let augmentation = Augmentation(kinds)
        let read = try JSONDecoder().decode(Augmentation.self, from: JSONEncoder().encode(augmentation))
        #expect(read == augmentation)
    }

    @Test("Files of earlier versions with fewer kinds are read") func older() throws {
        let text = #"{"kinds":["flip","flip-vertical","rotate","crop","exposure","blur"]}"#
        let read = try JSONDecoder().decode(Augmentation.self, from: Data(text.utf8))
        #expect(read == Augmentation([.flip, .flipVertical, .rotate, .crop, .exposure, .blur]))
    }

    @Test("An unknown kind is an error") func unknown() {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(Augmentation.self, from: Data(#"{"kinds":["flip","spin"]}"#.utf8))
        }
    }
}
