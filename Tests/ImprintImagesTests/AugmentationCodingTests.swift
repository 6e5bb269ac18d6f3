import Foundation
import ImprintImages
import Testing

@Suite("Augmentation as JSON") struct AugmentationCodingTests {
    @Test("Kinds are written in their fixed order, so that equal values give equal bytes") func order() throws {
        let text = String(
            decoding: try JSONEncoder().encode(Augmentation(Set(Augmentation.Kind.allCases))), as: UTF8.self)
        let kinds = #""flip","flip-vertical","rotate","crop","exposure","blur","noise","perspective","color","jpeg""#
        #expect(text == #"{"kinds":[\#(kinds)]}"#)
    }

    @Test("An augmentation survives JSON", arguments: [[], [.blur], [.crop, .flip]] as [Set<Augmentation.Kind>])
    func roundTrip(kinds: Set<Augmentation.Kind>) throws {
        let augmentation = Augmentation(kinds)
        let read = try JSONDecoder().decode(Augmentation.self, from: JSONEncoder().encode(augmentation))
        #expect(read == augmentation)
    }

    @Test("What was written before there were more kinds is read") func older() throws {
        let text = #"{"kinds":["flip","flip-vertical","rotate","crop","exposure","blur"]}"#
        let read = try JSONDecoder().decode(Augmentation.self, from: Data(text.utf8))
        #expect(read == Augmentation([.flip, .flipVertical, .rotate, .crop, .exposure, .blur]))
    }

    @Test("An unknown kind is refused") func unknown() {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(Augmentation.self, from: Data(#"{"kinds":["flip","spin"]}"#.utf8))
        }
    }
}
