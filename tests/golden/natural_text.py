"""Sentences written for these tests, in 34 languages, for tokenizer goldens and for training the small tokenizers."""

SENTENCES = {
    "English": [
        "The baker opens at six, but the bread is never ready before half past.",
        "She asked whether anyone had seen the ladder, and nobody dared to answer.",
        "It's raining again; we'll have to postpone the picnic until they've fixed the roof.",
        "\"You can't be serious,\" he said, putting 250 grams of flour into the kettle.",
        "Between 1998 and 2004 the village lost a third of its inhabitants.",
        "A good map leaves out almost everything (that's what makes it useful).",
        "I'd rather walk home than wait for the 11:45 bus.",
        "The committee's decision, which had taken months, was reversed within an hour.",
        "Please send the signed form to archive@example.org by Friday.",
        "Water boils at 100 °C at sea level; on the mountain it's closer to 90.",
    ],
    "German": [
        "Der Zug nach Görlitz fährt heute von Gleis 7 ab.",
        "Wer früh aufsteht, sieht die Füchse über die Straße laufen.",
        "Die Donaudampfschifffahrtsgesellschaft gibt es längst nicht mehr.",
        "„Schöne Grüße an deine Mutter“, rief er und schloss die Tür.",
        "Für 3,50 € bekommt man hier kaum noch einen Kaffee.",
    ],
    "French": [
        "L'été dernier, nous avons dormi trois nuits sur le bateau d'un ami.",
        "Qu'est-ce que vous avez préparé pour le dîner ?",
        "Le garçon aperçut au loin une forêt où personne n'était jamais allé.",
        "Il faut 20 minutes à pied, ou 5 en vélo, pour rejoindre la gare.",
        "Où as-tu trouvé cette vieille clé rouillée ?",
    ],
    "Spanish": [
        "¿Cuántos años tenía tu abuela cuando llegó a la ciudad?",
        "El señor Núñez olvidó las llaves encima de la mesa.",
        "Mañana iremos al mercado a comprar 2 kg de naranjas.",
        "¡Qué alegría volver a verte después de tanto tiempo!",
        "La lluvia cayó toda la noche sobre los tejados del pueblo.",
    ],
    "Portuguese": [
        "A estação fica a dez minutos daqui, depois da ponte.",
        "Não sei por que razão o relógio da igreja parou às 4h15.",
        "As crianças brincavam no quintal enquanto o avô dormia.",
        "Você já provou o pão que a vizinha faz aos sábados?",
    ],
    "Italian": [
        "Perché il gatto si nasconde sempre sotto il letto?",
        "L'università si trova dall'altra parte del fiume.",
        "Abbiamo mangiato così tanto che nessuno voleva più il dolce.",
        "Il treno delle 8:12 è in ritardo di mezz'ora.",
    ],
    "Dutch": [
        "De fiets van mijn zus staat al drie weken bij de bakker.",
        "Zij zei dat ze 's ochtends geen koffie meer drinkt.",
        "Het ijs op de sloot is nog te dun om te schaatsen.",
    ],
    "Swedish": [
        "På sommaren går solen knappt ner i norra Sverige.",
        "Han köpte två kanelbullar och gav den ena åt hunden.",
        "Är det någon som har sett mina glasögon?",
    ],
    "Finnish": [
        "Järven rannalla on pieni punainen mökki.",
        "Äiti keittää kahvia, vaikka kello on jo yksitoista.",
        "Lumi suli tänä vuonna vasta huhtikuun lopussa.",
    ],
    "Polish": [
        "W zeszłym roku przeczytałem trzydzieści siedem książek.",
        "Czy możesz podać mi sól, proszę?",
        "Źrebię biegło za swoją matką przez mokrą łąkę.",
    ],
    "Czech": [
        "Příliš mnoho lidí čekalo na poslední tramvaj.",
        "Včera večer jsme viděli ježka na zahradě.",
        "Její bratr pracuje v knihovně už dvanáct let.",
    ],
    "Hungarian": [
        "A nagymamám minden ősszel szilvalekvárt főz.",
        "Hány óra van most Tokióban?",
        "Az erdő szélén egy öreg ház áll, üres ablakokkal.",
    ],
    "Turkish": [
        "Dün akşam İstanbul'da çok güçlü bir rüzgâr vardı.",
        "Çocuklar bahçede ağaçların altında oynuyorlar.",
        "Bir bardak çay daha ister misiniz?",
    ],
    "Vietnamese": [
        "Buổi sáng mẹ tôi thường ra chợ mua rau.",
        "Hôm nay trời nóng quá, chúng ta đi bơi nhé!",
        "Cuốn sách này được viết cách đây hơn 200 năm.",
    ],
    "Indonesian": [
        "Kereta terakhir berangkat pukul sepuluh malam.",
        "Adik saya sedang belajar memasak nasi goreng.",
    ],
    "Swahili": [
        "Watoto wanacheza mpira karibu na mto.",
        "Leo asubuhi mvua kubwa ilinyesha kijijini.",
    ],
    "Icelandic": [
        "Þegar veðrið er gott sést til eyjanna frá höfninni.",
        "Hún á tvær kýr, eina geit og mjög gamlan hest.",
    ],
    "Russian": [
        "Вчера мы долго искали дорогу к старой мельнице.",
        "Сколько стоит билет до Новосибирска?",
        "Она открыла окно, и в комнату влетел снег.",
        "В 1961 году в посёлке построили новую школу.",
    ],
    "Ukrainian": [
        "Їжак приніс у гніздо жовте листя.",
        "Ми приїхали до Львова о шостій ранку.",
        "Чи є у вас свіжий хліб?",
    ],
    "Bulgarian": [
        "Планината беше покрита с мъгла до обяд.",
        "Баба прави най-вкусната баница в селото.",
    ],
    "Greek": [
        "Το πλοίο φεύγει από τον Πειραιά στις επτά το πρωί.",
        "Πού έβαλες τα κλειδιά του αυτοκινήτου;",
        "Η θάλασσα ήταν ήσυχη και ο ουρανός καθαρός.",
    ],
    "Hebrew": [
        "החתול ישן על הספה כל היום.",
        "מתי יוצא הרכבת האחרונה לחיפה?",
        "שָׁלוֹם לְכֻלָּם, אמר הזקן וחייך.",
    ],
    "Arabic": [
        "ذهبنا إلى السوق لشراء الخبز والزيتون.",
        "كم عمر هذا البيت القديم؟",
        "وُلِدَ جدي في عام ١٩٣٢ في قرية صغيرة.",
    ],
    "Persian": [
        "باران تمام شب بارید و صبح هوا صاف شد.",
        "می‌خواهم یک کتاب دربارهٔ ستاره‌ها بخوانم.",
    ],
    "Hindi": [
        "कल शाम को हम नदी के किनारे टहलने गए थे।",
        "क्या आपके पास पाँच सौ रुपये का छुट्टा है?",
        "बच्चे ने खिड़की से बाहर देखा और हँस पड़ा।",
    ],
    "Bengali": [
        "আজ সকালে আকাশে অনেক মেঘ ছিল।",
        "আমার দাদা প্রতিদিন ভোরে বাগানে কাজ করেন।",
    ],
    "Tamil": [
        "நேற்று இரவு கடற்கரையில் பலத்த காற்று வீசியது.",
        "உங்கள் பெயர் என்ன?",
    ],
    "Thai": [
        "เมื่อวานนี้ฝนตกหนักมากที่เชียงใหม่",
        "แม่ซื้อมะม่วงสามกิโลจากตลาด",
    ],
    "Chinese": [
        "昨天晚上我们在河边散步，看见了很多萤火虫。",
        "这本书一共有三百二十页，我只读了一半。",
        "請問最近的火車站怎麼走？",
        "他说：“明天上午9点开会，别迟到。”",
    ],
    "Japanese": [
        "昨日の夜、駅前で古い友だちに会いました。",
        "このラーメンは８００円で、とてもおいしいです。",
        "「どこへ行くの？」と母が聞いた。",
        "カメラのバッテリーを充電するのを忘れてしまった。",
    ],
    "Korean": [
        "어제는 비가 와서 하루 종일 집에 있었어요.",
        "이 식당은 김치찌개가 정말 맛있습니다.",
        "내일 오후 3시에 도서관 앞에서 만나자.",
    ],
    "Georgian": ["მთვარე ნელა ამოვიდა მთის უკან.", "ბებია ყოველ კვირას პურს აცხობს."],
    "Armenian": ["Երեկոյան մենք նստեցինք պարտեզում և խոսեցինք։", "Գիրքը սեղանի վրա է։"],
    "Amharic": ["ዛሬ ጠዋት ወደ ገበያ ሄድኩ።", "ልጆቹ በዛፉ ሥር ይጫወታሉ።"],
}
